"""Stateful parts: what a run remembers from round to round, besides the global model.

Every part gives its memory as named arrays and takes it back, so the loop checkpoints and restores
all of them alike: `state() -> State`, `restore(State)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from slimfl.devices import Population
from slimfl.errors import RequestError
from slimfl.methods import Arrival, State
from slimfl.nn import Vector

#: Booleans, integers and floats: the kinds that every version of safetensors stores.
STORED_KINDS = "biuf"

#: More than this is worth a word before a run begins.
WARN_BYTES = 10**9


class Part(Protocol):
    """Something that remembers named arrays from round to round.

    Their names, types and shapes stay the same, but for axes that are empty in the beginning.
    """

    def state(self) -> State:
        """What a checkpoint stores."""

    def restore(self, state: State) -> None:
        """Restore what `state` returned."""


class Kept:
    """The state of a part that is a plain value itself: a method or a channel.

    Args:
        words: The part's name for messages.
        state: Its state before the first round.
    """

    def __init__(self, words: str, state: Mapping[str, Any]) -> None:
        self.words = words
        self.arrays = self._storable(state)

    def checked(self, state: Mapping[str, Any]) -> State:
        """A later state, with the names, types and shapes of the first one."""
        arrays = self._storable(state)
        before, now = _layout(self.arrays), _layout(arrays)
        if before != now:
            raise RequestError(
                f"the state of {self.words} was {before} and is now {now}; keep names, types and "
                "shapes the same in all rounds"
            )
        return arrays

    def state(self) -> State:
        """The arrays themselves, which the part does not change."""
        return self.arrays

    def restore(self, state: State) -> None:
        """Restore what `state` returned."""
        self.arrays = self.checked(state)

    def _storable(self, state: Mapping[str, Any]) -> State:
        """Arrays in C order, as safetensors ignores that one is transposed."""
        if not isinstance(state, Mapping) or not all(isinstance(name, str) for name in state):
            raise RequestError(f"the state of {self.words} is not a dictionary with names as keys")
        arrays = {name: np.asarray(value, order="C") for name, value in state.items()}
        for name, array in arrays.items():
            if array.dtype.kind not in STORED_KINDS or array.dtype.itemsize > 8:
                raise RequestError(
                    f"the state of {self.words} has {name!r} of type {array.dtype}, which "
                    "checkpoints cannot store; use whole or real numbers of at most 64 bits (two "
                    "arrays for complex numbers)"
                )
        return arrays


def _layout(state: State) -> str:
    """The names, types and shapes of arrays, as one text."""
    listed = (f"{name} {array.dtype} {list(array.shape)}" for name, array in sorted(state.items()))
    return ", ".join(listed) or "nothing"


class LastModels:
    """The last `count` global models, in a ring, whose mean is tested as a second score.

    Args:
        count: How many models the mean is taken over.
        parameters: Length of a model.
    """

    def __init__(self, count: int, parameters: int) -> None:
        self.ring = np.zeros((count, parameters), np.float32)

    def add(self, number: int, model: Vector) -> None:
        """Keep the model of a round instead of the oldest one."""
        self.ring[number % len(self.ring)] = model

    def mean(self, number: int) -> Vector | None:
        """The mean after a round; None before there are `count` models."""
        if number < len(self.ring):
            return None
        mean: Vector = self.ring.mean(axis=0, dtype=np.float64).astype(np.float32)
        return mean

    def state(self) -> State:
        """What a checkpoint stores."""
        return {"models": self.ring.copy()}

    def restore(self, state: State) -> None:
        """Restore what `state` returned."""
        self.ring = np.array(state["models"])


class LastSegments:
    """What arrived last of every device, for `federation.absent = "stale"`.

    A device whose segment did not arrive counts in the mean with its last one that did, and is left
    out until there is one. Who was not asked in a round does not count in it.

    The memory is one vector for every device of which something arrived so far: it grows with the
    devices that take part, not with those that there are.
    """

    def __init__(self, parameters: int) -> None:
        self.parameters = parameters
        self.values: dict[int, Vector] = {}
        """By device; not a number where nothing has arrived yet, which no update contains."""
        self.weights: dict[int, float] = {}

    def add(self, arrival: Arrival) -> None:
        """Remember what arrived."""
        device = arrival.device.id
        if device not in self.values:
            self.values[device] = np.full(self.parameters, np.nan, np.float32)
        self.values[device][arrival.where] = arrival.parameters[arrival.where]
        self.weights[device] = arrival.weight

    def missing(
        self, arrived: Mapping[int, Any], asked: Iterable[int], population: Population
    ) -> Iterator[Arrival]:
        """For what is missing of a round, what arrived last.

        Where nobody delivered a parameter in this round there is no news, and
        `federation.missing` decides.

        Args:
            arrived: The positions of what arrived in this round, by device.
            asked: The devices that were asked.
            population: All devices.
        """
        anybody = np.zeros(self.parameters, np.bool_)
        for where in arrived.values():
            anybody[where] = True
        same: dict[bytes, NDArray[np.int64]] = {}
        for device in sorted({*asked} & {*self.values}):
            stale = anybody & ~np.isnan(self.values[device])
            if device in arrived:
                stale[arrived[device]] = False
            if stale.any():
                # one object for all devices that miss the same: the mean adds their weights up
                where = same.setdefault(np.packbits(stale).tobytes(), np.flatnonzero(stale))
                yield Arrival(
                    population.device(device), self.values[device], where, self.weights[device]
                )

    def memory_warning(self, taking_part: int) -> str | None:
        """A sentence where the memory is large; None otherwise."""
        held = 4 * self.parameters * taking_part
        if held < WARN_BYTES:
            return None
        return (
            f'federation.absent = "stale" keeps the last update of up to {taking_part:,} devices, '
            f"{held / 1e9:.1f} GB in memory and in every checkpoint; "
            'federation.absent = "old" keeps none'
        )

    def state(self) -> State:
        """What a checkpoint stores."""
        devices = sorted(self.values)
        values = [self.values[device] for device in devices]
        return {
            "devices": np.array(devices, np.int64),
            "weights": np.array([self.weights[device] for device in devices], np.float64),
            "values": np.array(values, np.float32).reshape(len(devices), self.parameters),
        }

    def restore(self, state: State) -> None:
        """Restore what `state` returned."""
        devices = state["devices"].tolist()
        self.values = {
            device: np.array(row) for device, row in zip(devices, state["values"], strict=True)
        }
        self.weights = dict(zip(devices, state["weights"].tolist(), strict=True))
