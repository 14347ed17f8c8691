"""What a federated method is: three small answers.

What does a device train, what does it send, how does the server merge. SlimFL, Vanilla FL and their
rivals differ only there; the round loop is written once, in `simulation.py`.
"""

from typing import Protocol

from slimfl.federation.merge import SegmentAverage
from slimfl.nn import Segments, Vector
from slimfl.radio import Messages
from slimfl.training import Curriculum


class Method(Protocol):
    """A method is a small value; all that changes lives in the run."""

    @property
    def name(self) -> str:
        """As on the command line."""

    @property
    def widths(self) -> tuple[int, ...]:
        """The widths that the method delivers, and so the ones to evaluate."""

    def trains(self, device: int) -> Curriculum:
        """What a device trains."""

    def sends(self, device: int) -> Messages:
        """What a device sends: for each superposed message, the segments it carries."""

    def merge(self, segments: Segments, last: Vector, missing: str) -> SegmentAverage:
        """How the server merges: an empty running average for the round's updates."""
