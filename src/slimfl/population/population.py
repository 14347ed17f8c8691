"""The devices of a federation, stored as columns: a million of them stay cheap.

A `Population` is the table, a `Device` one row of it. What a device *can* do stands here; what it
is asked to do in a round is the method's business.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Device:
    """One device: a row of the population."""

    id: int
    samples: int
    """Training samples it holds."""
    max_width: int
    """Index of the widest width it can train."""
    power_dbm: float
    """Transmit power."""
    distance_m: float
    """From the server's antenna."""


@dataclass(frozen=True, eq=False)
class Population:
    """The columns of all devices, or of those in `ids`."""

    ids: NDArray[np.int64]
    samples: NDArray[np.int64]
    max_width: NDArray[np.int64]
    power_dbm: NDArray[np.float64]
    distance_m: NDArray[np.float64]

    @classmethod
    def alike(
        cls, samples: NDArray[np.int64], *, max_width: int, power_dbm: float, distance_m: float
    ) -> Self:
        """Devices that differ in the number of their samples alone, as in the paper.

        The equal columns are single numbers seen from every row, so they take no memory.
        """
        count = len(samples)
        return cls(
            np.arange(count),
            samples,
            np.broadcast_to(np.int64(max_width), count),
            np.broadcast_to(np.float64(power_dbm), count),
            np.broadcast_to(np.float64(distance_m), count),
        )

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Any) -> Self:
        """The devices in these rows, in that order."""
        return replace(self, **{each.name: getattr(self, each.name)[rows] for each in fields(self)})

    def device(self, row: int) -> Device:
        """One row."""
        return Device(
            int(self.ids[row]),
            int(self.samples[row]),
            int(self.max_width[row]),
            float(self.power_dbm[row]),
            float(self.distance_m[row]),
        )

    def __iter__(self) -> Iterator[Device]:
        columns = (getattr(self, each.name).tolist() for each in fields(self))
        return (Device(*row) for row in zip(*columns, strict=True))
