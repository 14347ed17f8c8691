"""What the server merges: the parts of updates that arrived, one at a time.

Everything is counted per parameter, not per segment, so that methods without nested sub-networks
need no second mechanism.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slimfl.devices import Device
from slimfl.errors import RequestError
from slimfl.nn import Vector

#: The positions of some parameters in the flat vector; a slice if all of them.
Positions = NDArray[np.int64] | slice


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
    """

    def __init__(self, last: Vector) -> None:
        self.last = last
        # float64, as the rounding of a float32 sum would grow with the number of devices
        self.sums = np.zeros(len(last), np.float64)
        self._weights: dict[int, tuple[Positions, float]] = {}

    def add(self, parameters: Vector, where: Positions, weight: float = 1.0) -> None:
        """Add what arrived from one device."""
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
        return model

    def over_all(self, asked: ArrayLike, absent: str, missing: str = "keep") -> Vector:
        """The mean of every parameter over all devices that were asked for it, with weight 1 each.

        `asked` is their number, one for all parameters or one each. Algorithm 2 divides by the
        number of devices that delivered. To divide by all counts the others as something: as the
        `old` model, or as `zero`. This is not what the paper writes; it is a reading that can be
        tried.
        """
        model, weights = self.result(missing), self.weights()
        devices = np.broadcast_to(np.asarray(asked, np.float64), weights.shape)
        some = (weights > 0) & (weights < devices)
        instead = self.last[some].astype(np.float64) if absent == "old" else 0.0
        total = self.sums[some] + (devices[some] - weights[some]) * instead
        model[some] = (total / devices[some]).astype(np.float32)
        return model


#: Changes the sums before they become a mean.
OnSums = Callable[[RunningMean], None]


class Arrivals:
    """What arrives in a round, in the order of the devices; it can be read only once.

    Most methods need only `mean`. Iterating gives every single arrival, for methods that merge
    differently.
    """

    def __init__(
        self,
        last: Vector,
        stream: Iterator[Arrival],
        on_sums: OnSums | None = None,
        *,
        asked: ArrayLike = 0,
        absent: str = "skip",
    ) -> None:
        self.last, self._stream, self._on_sums = last, stream, on_sums
        self._asked, self._absent = asked, absent
        self.heard: NDArray[np.bool_] | None = None
        """The parameters of which something arrived, after `mean` was called; None before."""

    def __iter__(self) -> Iterator[Arrival]:
        if self._on_sums is not None:
            raise RequestError(
                "this method reads individual updates, but a filter such as the noise for privacy "
                "works only on their mean; remove the filter or choose another method"
            )
        return self._stream

    def mean(self, missing: str = "keep") -> Vector:
        """The mean of every parameter over the devices that delivered it.

        `missing` decides about parameters that no device delivered: `keep` the last value, or
        `zero`.
        """
        running = RunningMean(self.last)
        for arrival in self._stream:
            running.add(arrival.parameters, arrival.where, arrival.weight)
        if self._on_sums is not None:
            self._on_sums(running)
        self.heard = running.weights() > 0
        if self._absent != "skip":
            return running.over_all(self._asked, self._absent, missing)
        return running.result(missing)
