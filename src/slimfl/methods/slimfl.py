"""SlimFL: algorithm 2 of the paper, for any number of widths."""

from dataclasses import dataclass
from typing import ClassVar

from slimfl.devices import Device
from slimfl.methods.merging import Merge, RunningMean, State
from slimfl.methods.method import Random
from slimfl.nn import Vector
from slimfl.training import Work


@dataclass(frozen=True)
class SlimFL:
    """Every device trains all widths that it can at once and sends their segments superposed."""

    widths: tuple[float, ...]
    missing: str = "keep"
    name: str = "slimfl"
    title: ClassVar[str] = "SlimFL"

    def evaluates(self) -> tuple[int, ...]:
        """All widths."""
        return tuple(range(len(self.widths)))

    def assign(self, device: Device, round: int, random: Random) -> Work | None:
        """One message per segment: a poor channel still yields the narrow model."""
        widths = tuple(range(device.max_width + 1))
        return Work(widths, messages=tuple((segment,) for segment in widths))

    def start(self, model: Vector) -> State:
        """No state but the model."""
        return {}

    def merge(self, mean: RunningMean, state: State) -> Merge:
        """The mean of each segment over the devices that delivered it: equation (6)."""
        return Merge(mean, state, self.missing)
