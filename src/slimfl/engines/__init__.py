"""Engines do the arithmetic: they are interchangeable and give the same numbers."""

from typing import TYPE_CHECKING

from slimfl.lazy import public_names

if TYPE_CHECKING:
    from slimfl.engines.base import Engine as Engine
    from slimfl.engines.base import Missing as Missing
    from slimfl.engines.base import Outcome as Outcome
    from slimfl.engines.base import Score as Score
    from slimfl.engines.base import Task as Task
    from slimfl.engines.base import Update as Update
    from slimfl.engines.base import Workload as Workload
    from slimfl.engines.choice import Choice as Choice
    from slimfl.engines.choice import ChooseEngine as ChooseEngine
    from slimfl.engines.choice import choose as choose
else:
    __getattr__, __dir__, __all__ = public_names(__name__, __file__)
