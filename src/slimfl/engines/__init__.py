"""Engines do the arithmetic: they are interchangeable and give the same numbers."""

from slimfl.engines.base import Engine, Missing, Outcome, Score, Task, Update, Workload
from slimfl.engines.choice import Choice, ChooseEngine, choose

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
