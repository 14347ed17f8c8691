"""Vanilla FL: federated averaging of one fixed width, without superposition."""

from dataclasses import dataclass

from slimfl.devices import Device
from slimfl.methods.merging import Merge, RunningMean, State
from slimfl.methods.method import Random
from slimfl.nn import Vector
from slimfl.training import Work


@dataclass(frozen=True)
class Vanilla:
    """Every device that can trains one width and sends it whole, with all the power.

    The message carries segments 1 to i+1 in the same time as SlimFL, so at the sum of their rates.
    """

    index: int
    """Index of the width."""
    name: str

    def evaluates(self) -> tuple[int, ...]:
        """The one width."""
        return (self.index,)

    def assign(self, device: Device, round: int, random: Random) -> Work | None:
        """The one width on labels, in one message; a device that cannot train it sits out."""
        if device.max_width < self.index:
            return None
        return Work((self.index,), messages=(tuple(range(self.index + 1)),))

    def start(self, model: Vector) -> State:
        """No state but the model."""
        return {}

    def merge(self, mean: RunningMean, state: State) -> Merge:
        """Federated averaging; the segments of wider widths do not change."""
        return Merge(mean, state)
