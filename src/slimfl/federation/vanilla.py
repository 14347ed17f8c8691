"""Vanilla FL: federated averaging of one fixed width, without superposition."""

from dataclasses import dataclass

from slimfl.federation.merge import SegmentAverage
from slimfl.nn import Segments, Vector
from slimfl.radio import Messages
from slimfl.training import Curriculum


@dataclass(frozen=True)
class Vanilla:
    """Every device trains one width and sends it whole, with all the power.

    The message carries segments 1 to i+1 in the time that SlimFL has, so at the sum of their rates.
    """

    index: int
    name: str

    @property
    def widths(self) -> tuple[int, ...]:
        """The one width."""
        return (self.index,)

    def trains(self, device: int) -> Curriculum:
        """The one width, on labels."""
        return Curriculum((self.index,))

    def sends(self, device: int) -> Messages:
        """One message with every segment of the width."""
        return (tuple(range(self.index + 1)),)

    def merge(self, segments: Segments, last: Vector, missing: str) -> SegmentAverage:
        """Federated averaging; the segments of wider widths are nobody's and stay as they are."""
        return SegmentAverage(segments, last, "keep")
