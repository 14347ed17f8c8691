"""A method with server momentum, and a cap on the width of every device."""

from dataclasses import dataclass

import numpy as np

from slimfl.devices import Device
from slimfl.methods import Arrivals, Assignment, Random, State
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

    def assign(self, device: Device, round: int, random: Random) -> Assignment:
        """One message per segment that the device can train."""
        widest = 0 if device.id < self.weak else device.max_width
        widths = tuple(range(widest + 1))
        return Assignment(widths, messages=tuple((segment,) for segment in widths))

    def initial_state(self, model: Vector) -> State:
        """The velocity of every parameter."""
        return {"velocity": np.zeros_like(model)}

    def aggregate(self, model: Vector, state: State, arrivals: Arrivals) -> tuple[Vector, State]:
        """A parameter that no device delivered does not change."""
        change = arrivals.mean() - model
        heard = change != 0
        velocity = state["velocity"].copy()
        velocity[heard] = self.momentum * velocity[heard] + change[heard]
        return np.where(heard, model + velocity, model), {"velocity": velocity}
