"""What arrived last of every device, for `federation.absent = "stale"`.

A device whose segment did not arrive counts in the mean with its last one that did, and is left out
until there is one. Who was not asked in a round does not count in it.

The memory is one vector for every device of which something arrived so far: it grows with the
devices that take part, not with those that there are.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimfl.devices import Population
from slimfl.methods import Arrival, Positions
from slimfl.nn import Vector

#: More than this is worth a word before a run begins.
WARN_BYTES = 10**9


class LastSegments:
    """The last values of every parameter that arrived from each device, and the device's weight."""

    def __init__(self, parameters: int) -> None:
        self.parameters = parameters
        self.values: dict[int, Vector] = {}
        """By device; not a number where nothing has arrived yet, which no update contains."""
        self.weights: dict[int, float] = {}

    def filled(
        self, stream: Iterator[Arrival], asked: Iterable[int], population: Population
    ) -> Iterator[Arrival]:
        """What arrives in a round; then, for what is missing of it, what arrived last.

        Where nobody delivered a parameter in this round there is no news, and
        `federation.missing` decides.
        """
        delivered: dict[int, Positions] = {}
        anybody = np.zeros(self.parameters, np.bool_)
        for arrival in stream:
            device = arrival.device.id
            if device not in self.values:
                self.values[device] = np.full(self.parameters, np.nan, np.float32)
            self.values[device][arrival.where] = arrival.parameters[arrival.where]
            self.weights[device] = arrival.weight
            delivered[device] = arrival.where
            anybody[arrival.where] = True
            yield arrival
        same: dict[bytes, NDArray[np.int64]] = {}
        for device in sorted({*asked} & {*self.values}):
            stale = anybody & ~np.isnan(self.values[device])
            if device in delivered:
                stale[delivered[device]] = False
            if stale.any():
                # one object for all devices that miss the same: the mean adds their weights up
                where = same.setdefault(np.packbits(stale).tobytes(), np.flatnonzero(stale))
                yield Arrival(
                    population.device(device), self.values[device], where, self.weights[device]
                )

    def state(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint holds."""
        devices = sorted(self.values)
        values = [self.values[device] for device in devices]
        return {
            "devices": np.array(devices, np.int64),
            "weights": np.array([self.weights[device] for device in devices], np.float64),
            "values": np.array(values, np.float32).reshape(len(devices), self.parameters),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take back what `state` gave, after `problem` found nothing."""
        devices = state["devices"].tolist()
        self.values = {
            device: np.array(row) for device, row in zip(devices, state["values"], strict=True)
        }
        self.weights = dict(zip(devices, state["weights"].tolist(), strict=True))


def problem(state: Mapping[str, NDArray[Any]], parameters: int, devices: int) -> str | None:
    """What cannot be so in a checkpoint's arrays; None if all can."""
    kinds = {"devices": np.int64, "weights": np.float64, "values": np.float32}
    if {name: value.dtype for name, value in state.items()} != kinds:
        return "it does not say what arrived last of every device"
    ids, weights, values = (state[name] for name in kinds)
    if ids.ndim != 1 or weights.shape != ids.shape or values.shape != (len(ids), parameters):
        return "what arrived last of every device has another shape"
    if len({*ids.tolist()}) != len(ids) or not ((ids >= 0) & (ids < devices)).all():
        return "something arrived last of devices that there are not"
    if not (np.isfinite(weights) & (weights > 0)).all() or np.isinf(values).any():
        return "what arrived last of a device is no number"
    return None


def memory_warning(parameters: int, taking_part: int) -> str | None:
    """A sentence where the memory is large; None otherwise."""
    held = 4 * parameters * taking_part
    if held < WARN_BYTES:
        return None
    return (
        f'federation.absent = "stale" keeps the last update of up to {taking_part:,} devices, '
        f"{held / 1e9:.1f} GB in memory and in every checkpoint; "
        'federation.absent = "old" keeps none'
    )
