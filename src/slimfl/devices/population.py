"""The devices of a federation, stored as columns, so that a million of them stay cheap.

A `Population` is the table, a `Device` one of its rows. It describes what a device *can* do;
methods decide what it is asked to do in a round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from slimfl.errors import RequestError

#: The energy preset of devices without their own.
DEFAULT_ENERGY = "default"

#: The class name if all devices are of one kind.
ONE_CLASS = "device"


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
    macs_per_s: float = math.inf
    """Multiply-adds per second; infinite if not specified."""
    battery_j: float = math.inf
    """Initial charge; infinite on mains power."""
    availability: float = 1.0
    """Share of rounds in which it can be reached."""
    angle_rad: float = 0.0
    """Direction from the antenna."""
    data_share: float = 1.0
    """Intended amount of data relative to the others."""
    device_class: str = ONE_CLASS
    energy: str = DEFAULT_ENERGY
    """The energy preset of its processor."""

    @property
    def x_m(self) -> float:
        """Its place, with the antenna at (0, 0)."""
        return self.distance_m * math.cos(self.angle_rad)

    @property
    def y_m(self) -> float:
        """Its place, with the antenna at (0, 0)."""
        return self.distance_m * math.sin(self.angle_rad)


# one number represents a column of equal ones
_INFINITE: Any = np.float64(math.inf)
_ZERO: Any = np.float64(0.0)
_ONE: Any = np.float64(1.0)
_FIRST: Any = np.int16(0)

#: Columns of indices into names, with the field that has the names.
_NAMED = {"device_class": "class_names", "energy": "energy_names"}


@dataclass(frozen=True, eq=False)
class Population:
    """The columns of all devices, or of those in `ids`.

    A column given as a single number is that number for every device and takes no memory.
    """

    ids: NDArray[np.int64]
    samples: NDArray[np.int64]
    max_width: NDArray[np.int64]
    power_dbm: NDArray[np.float64]
    distance_m: NDArray[np.float64]
    macs_per_s: NDArray[np.float64] = _INFINITE
    battery_j: NDArray[np.float64] = _INFINITE
    availability: NDArray[np.float64] = _ONE
    angle_rad: NDArray[np.float64] = _ZERO
    data_share: NDArray[np.float64] = _ONE
    device_class: NDArray[np.int16] = _FIRST
    """Index into `class_names`."""
    energy: NDArray[np.int16] = _FIRST
    """Index into `energy_names`."""
    class_names: tuple[str, ...] = (ONE_CLASS,)
    energy_names: tuple[str, ...] = (DEFAULT_ENERGY,)

    def __post_init__(self) -> None:
        for name in self.columns():
            column = np.asarray(getattr(self, name))
            if column.ndim == 0:
                object.__setattr__(self, name, np.broadcast_to(column, len(self.ids)))

    @staticmethod
    def columns() -> tuple[str, ...]:
        """The names of the columns, in the order of a device's fields."""
        return _COLUMNS

    @classmethod
    def alike(
        cls, samples: NDArray[np.int64], *, max_width: int, power_dbm: float, distance_m: float
    ) -> Self:
        """Devices that differ only in the number of samples, as in the paper.

        Args:
            samples: [device] training samples.
            max_width: Index of the widest width that each can train.
            power_dbm: Transmit power of each.
            distance_m: From the server's antenna.
        """
        return cls(
            np.arange(len(samples)),
            samples,
            np.int64(max_width),  # type: ignore[arg-type]
            np.float64(power_dbm),  # type: ignore[arg-type]
            np.float64(distance_m),  # type: ignore[arg-type]
        )

    @property
    def x_m(self) -> NDArray[np.float64]:
        """Where every device stands, with the antenna at (0, 0)."""
        return self.distance_m * np.cos(self.angle_rad)

    @property
    def y_m(self) -> NDArray[np.float64]:
        """Where every device stands, with the antenna at (0, 0)."""
        return self.distance_m * np.sin(self.angle_rad)

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Any) -> Self:
        """The devices in these rows, in that order."""
        return replace(self, **{name: getattr(self, name)[rows] for name in self.columns()})

    def device(self, row: int) -> Device:
        """One row."""
        values = [getattr(self, name)[row].item() for name in _COLUMNS]
        *numbers, kind, energy = values
        names = {"device_class": self.class_names[kind], "energy": self.energy_names[energy]}
        return Device(*numbers, **names)

    def __iter__(self) -> Iterator[Device]:
        columns = (self._values(name) for name in self.columns())
        return (Device(*row) for row in zip(*columns, strict=True))

    def _values(self, column: str) -> list[Any]:
        values: list[Any] = getattr(self, column).tolist()
        if column not in _NAMED:
            return values
        names = getattr(self, _NAMED[column])
        return [names[index] for index in values]


_COLUMNS = tuple(each.name for each in fields(Population) if not each.name.endswith("_names"))


def width_indices(
    values: NDArray[np.float64], widths: tuple[float, ...], where: str
) -> NDArray[np.int64]:
    """The index of every device's width; refuses widths that the network does not have.

    Args:
        values: [device] widths as people write them.
        widths: Those of the network.
        where: Names their place in the refusal.
    """
    distinct, inverse = np.unique(values, return_inverse=True)
    for value in distinct.tolist():
        if value not in widths:
            known = ", ".join(f"{width:g}" for width in widths)
            raise RequestError(
                f"{where}: the network has no width {value:g}; choose a max_width from {known}"
            )
    return np.searchsorted(widths, distinct)[inverse].astype(np.int64)
