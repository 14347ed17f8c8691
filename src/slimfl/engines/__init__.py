"""Engines do the arithmetic: they are interchangeable and give the same numbers."""

from typing import TYPE_CHECKING

from slimfl.lazy import lazy_names

if TYPE_CHECKING:
    from slimfl.engines.base import Engine, Missing, Outcome, Score, Task, Update, Workload
    from slimfl.engines.choice import Choice, ChooseEngine, choose
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "slimfl.engines.base": [
                "Engine",
                "Missing",
                "Outcome",
                "Score",
                "Task",
                "Update",
                "Workload",
            ],
            "slimfl.engines.choice": ["Choice", "ChooseEngine", "choose"],
        },
    )

__all__ = [
    "Choice",
    "ChooseEngine",
    "Engine",
    "Missing",
    "Outcome",
    "Score",
    "Task",
    "Update",
    "Workload",
    "choose",
]
