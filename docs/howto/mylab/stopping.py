"""A callback that ends a run once it is accurate enough."""

from collections.abc import Callable
from dataclasses import dataclass

from slimfl.nn import Vector
from slimfl.round import Callback, RoundRecord


@dataclass
class StopAt(Callback):
    """Stops when every width has reached an accuracy."""

    accuracy: float = 0.8

    def on_round(self, record: RoundRecord, model: Callable[[], Vector]) -> bool:
        """True ends the run after this round."""
        tested = record.accuracy.values()
        return bool(tested) and min(tested) >= self.accuracy
