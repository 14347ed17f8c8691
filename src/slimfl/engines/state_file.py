"""The optimiser states of many devices in one file: safetensors with one row per device.

`devices` names the device of every row; `state/exp_avg` and similar arrays contain the rows. A file
is written once and never changed.
"""

import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from slimfl.files import open_plain, write_atomically
from slimfl.training import OptimiserState

_DEVICES, _STATE = "devices", "state/"

#: The devices of a file's rows, and the shape of each array per row.
Contents = tuple[NDArray[np.int64], dict[str, tuple[int, ...]]]


class UnreadableStatesError(Exception):
    """A file that does not contain states."""


def write_states(path: Path, states: dict[int, OptimiserState]) -> str:
    """Write the states and return the checksum of the file."""
    names = next(iter(states.values()))
    rows = {f"{_STATE}{name}": np.stack([one[name] for one in states.values()]) for name in names}
    contents = save({_DEVICES: np.array(list(states), np.int64), **rows})
    write_atomically(path, contents)
    return hashlib.sha256(contents).hexdigest()


def read_contents(path: Path) -> Contents:
    """The devices and shapes in a file, without reading the states."""
    open_plain(path, "rb").close()
    try:
        with safe_open(path, "numpy") as file:
            devices: NDArray[np.int64] = file.get_tensor(_DEVICES)
            names = [name for name in file.keys() if name != _DEVICES]  # noqa: SIM118
            slices = {name.removeprefix(_STATE): file.get_slice(name) for name in names}
            shapes = {name: tuple(one.get_shape()) for name, one in slices.items()}
            kinds = {one.get_dtype() for one in slices.values()}
    except (OSError, SafetensorError) as error:
        raise UnreadableStatesError(str(error)) from None
    if devices.dtype != np.int64 or devices.ndim != 1 or kinds - {"F32"}:
        raise UnreadableStatesError("it holds other types of numbers than states have")
    if any(shape[:1] != devices.shape for shape in shapes.values()):
        raise UnreadableStatesError("it has not one row per device")
    return devices, {name: shape[1:] for name, shape in shapes.items()}


def read_states(path: Path, rows: list[int]) -> list[OptimiserState]:
    """The states in these rows."""
    open_plain(path, "rb").close()
    with safe_open(path, "numpy") as file:
        slices = {
            name.removeprefix(_STATE): file.get_slice(name)
            for name in file.keys()  # noqa: SIM118
            if name != _DEVICES
        }
        return [{name: _row(one[row : row + 1]) for name, one in slices.items()} for row in rows]


def _row(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    return rows.reshape(rows.shape[1:])
