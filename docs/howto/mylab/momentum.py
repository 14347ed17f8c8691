"""A method with server momentum, and a cap on the width of every device."""

from dataclasses import dataclass

import numpy as np

from slimfl.devices import Device
from slimfl.methods import Merge, Random, RunningMean, State, Work
from slimfl.nn import Vector


@dataclass(frozen=True)
class CappedMomentum:
    """SlimFL for unequal devices; the server adds a decaying sum of changes."""

    widths: tuple[float, ...]
    weak: int = 0
    """Devices 0 to `weak` - 1 train and send only the narrowest width."""
    momentum: float = 0.9
    name: str = "capped-momentum"

    def evaluates(self) -> tuple[int, ...]:
        """All widths are tested."""
        return tuple(range(len(self.widths)))

    def assign(self, device: Device, round: int, random: Random) -> Work:
        """One message per segment that the device can train."""
        widest = 0 if device.id < self.weak else device.max_width
        widths = tuple(range(widest + 1))
        return Work(widths, messages=tuple((segment,) for segment in widths))

    def start(self, model: Vector) -> State:
        """The velocity of every parameter."""
        return {"velocity": np.zeros_like(model)}

    def merge(self, mean: RunningMean, state: State) -> Merge:
        """The mean of what arrives, and a step along the sum of changes."""
        return MomentumStep(mean, state, self.momentum)


class MomentumStep(Merge):
    """One round at the server."""

    def __init__(self, mean: RunningMean, state: State, momentum: float) -> None:
        super().__init__(mean, state)
        self.momentum = momentum

    def result(self) -> tuple[Vector, State]:
        """A parameter that no device delivered does not change."""
        model, velocity = self.mean.last, self.state["velocity"].copy()
        change = self.mean.result() - model
        arrived = change != 0
        velocity[arrived] = self.momentum * velocity[arrived] + change[arrived]
        return np.where(arrived, model + velocity, model), {"velocity": velocity}
