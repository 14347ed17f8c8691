"""What the server merges: the parts of updates that arrived, one at a time.

Everything is counted per parameter, not per segment, so that methods without nested sub-networks
need no second mechanism.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slimfl.devices import Device
from slimfl.nn import Vector

#: The positions of some parameters in the flat vector; a slice if all of them.
Positions = NDArray[np.int64] | slice

#: What a method keeps from round to round.
State = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Arrival:
    """The part of one device's update that arrived."""

    device: Device
    parameters: Vector
    """The whole vector, of which only `where` has arrived."""
    where: Positions
    weight: float


class RunningMean:
    """The mean of every parameter over the devices that delivered it.

    Updates stream into running sums, so memory does not grow with the number of devices.

    Args:
        last: The model before the round.
        asked: The number of devices that should deliver: one for all parameters or one each.
        absent: What a device counts as where it was asked and did not deliver: `skip` leaves it
            out, as algorithm 2 does; `old` is the last model and `zero` is zero. The paper writes
            neither; they are readings that can be tried, and give every device weight 1.
    """

    def __init__(self, last: Vector, *, asked: ArrayLike = 0, absent: str = "skip") -> None:
        self.last, self.asked, self.absent = last, asked, absent
        # float64, as the rounding of a float32 sum would grow with the number of devices
        self.sums = np.zeros(len(last), np.float64)
        self._weights: dict[int, tuple[Positions, float]] = {}

    def add(self, parameters: Vector, where: Positions, weight: float = 1.0) -> None:
        """Add what arrived from one device.

        Args:
            parameters: The whole vector [parameter].
            where: The positions of what arrived; the same object for the same positions.
            weight: Of the device in the mean.
        """
        self.sums[where] += weight * parameters[where].astype(np.float64)
        # positions are shared between devices, so their weights are added up first
        _, before = self._weights.get(id(where), (where, 0.0))
        self._weights[id(where)] = where, before + weight

    def weights(self) -> NDArray[np.float64]:
        """The total weight of every parameter."""
        total = np.zeros(len(self.last), np.float64)
        for where, weight in self._weights.values():
            total[where] += weight
        return total

    def result(self, missing: str = "keep") -> Vector:
        """The new values.

        A parameter that nobody delivered keeps its last value; with `missing="zero"` it becomes
        zero when another one did arrive, which is case 2 of algorithm 2 read literally (erratum
        E3). Nothing delivered at all leaves the model as it was (case 3).
        """
        weights = self.weights()
        arrived = weights > 0
        if not arrived.any():
            return self.last.copy()
        model = self.last.copy() if missing == "keep" else np.zeros_like(self.last)
        model[arrived] = (self.sums[arrived] / weights[arrived]).astype(np.float32)
        if self.absent != "skip":
            devices = np.broadcast_to(np.asarray(self.asked, np.float64), weights.shape)
            some = arrived & (weights < devices)
            instead = self.last[some].astype(np.float64) if self.absent == "old" else 0.0
            total = self.sums[some] + (devices[some] - weights[some]) * instead
            model[some] = (total / devices[some]).astype(np.float32)
        return model


class Merge:
    """Merges one round: the mean of what arrives. Methods that do something else override it.

    Args:
        mean: The mean of the round; `mean.last` is the model before it.
        state: What the method keeps from round to round.
        missing: What becomes of a parameter that no device delivered: `keep` or `zero`.
    """

    def __init__(self, mean: RunningMean, state: State, missing: str = "keep") -> None:
        self.mean, self.state, self.missing = mean, state, missing

    def add(self, arrival: Arrival) -> None:
        """Called with everything that arrives, in the order of the devices."""
        self.mean.add(arrival.parameters, arrival.where, arrival.weight)

    def result(self) -> tuple[Vector, State]:
        """The new global model and the new state."""
        return self.mean.result(self.missing), self.state

    @property
    def uses_the_mean(self) -> bool:
        """False if single updates are read: then noise on the mean would not protect them."""
        return type(self).add is Merge.add
