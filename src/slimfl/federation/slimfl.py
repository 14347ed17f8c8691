"""SlimFL: algorithm 2 of the paper, for any number of widths."""

from dataclasses import dataclass

from slimfl.federation.merge import SegmentAverage
from slimfl.nn import Segments, Vector
from slimfl.radio import Messages
from slimfl.training import Curriculum


@dataclass(frozen=True)
class SlimFL:
    """Every device trains all widths at once and sends all segments superposed."""

    width_count: int
    name: str = "slimfl"

    @property
    def widths(self) -> tuple[int, ...]:
        """All of them."""
        return tuple(range(self.width_count))

    def trains(self, device: int) -> Curriculum:
        """All widths, by superposition training."""
        return Curriculum(self.widths)

    def sends(self, device: int) -> Messages:
        """One message a segment: a poor channel still yields the narrow model."""
        return tuple((segment,) for segment in range(self.width_count))

    def merge(self, segments: Segments, last: Vector, missing: str) -> SegmentAverage:
        """Each segment over the devices that delivered it."""
        return SegmentAverage(segments, last, missing)
