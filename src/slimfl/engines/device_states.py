"""What devices keep between rounds, with bounded memory: the optimiser's state, and their model.

Their own last model is kept only if it is asked for.

The newest states are in memory. When they exceed `MEMORY_BYTES` they are written to a file, and
states are read from files when their devices train again. Files never change, so a checkpoint only
names them and writes what changed since the last one. A file whose rows are mostly outdated is
rewritten without them.

A file is safetensors with one row per device: `devices` names the device of every row, and
`state/exp_avg` and similar arrays contain the rows.
"""

import hashlib
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from slimfl.errors import RunError
from slimfl.files import open_plain, own_folder, write_atomically
from slimfl.nn import Vector
from slimfl.training import OptimiserState

#: Larger states in memory are written to a file, which briefly takes three times as much memory.
MEMORY_BYTES = 64 * 2**20

#: Up to this size a checkpoint contains all states itself, as one file is simpler.
INLINE_BYTES = 16 * 2**20

#: If there are more small files than this, half of them are merged.
SMALL_FILES = 1000


@dataclass(frozen=True)
class StateFile:
    """A file of states and its checksum."""

    path: Path
    sha256: str
    rows: int


_DEVICES, _STATE = "devices", "state/"

#: The devices of a file's rows, and the shape of each array per row.
Contents = tuple[NDArray[np.int64], dict[str, tuple[int, ...]]]

#: What a device's own last model is called beside the arrays of its optimiser.
MODEL = "model"


class DeviceStates:
    """The states of the devices that have trained; keeps no optimiser state if `keep` is false.

    Files go to `folder`, or to a temporary folder that is removed with the process.
    """

    def __init__(self, keep: bool) -> None:
        self.keep = keep
        self.first_model: Vector | None = None
        """The model that a device has before it first trains; None: models are not kept."""
        self.folder: Path | None = None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._lock = threading.RLock()  # the torch engine trains devices in parallel threads
        self._clear()

    def _clear(self) -> None:
        self._fresh: dict[int, OptimiserState] = {}
        self._fresh_bytes = 0
        self._files: dict[int, StateFile] = {}  # by number; a higher one was written later
        self._places: dict[int, tuple[int, int]] = {}  # by device: number of the file, row
        self._current: Counter[int] = Counter()  # rows in use, by number of the file
        self._saved: set[int] = set()  # files that a checkpoint may name
        self._next = 0

    def get(self, device: int) -> OptimiserState | None:
        """The state of a device's optimiser, None before it first trained."""
        held = self._held(device)
        if held is None or self.first_model is None:
            return held
        return {name: value for name, value in held.items() if name != MODEL} if self.keep else None

    def put(self, device: int, state: OptimiserState) -> None:
        """Keep the state of a device's optimiser for its next round."""
        if not self.keep and self.first_model is None:
            return
        held = dict(state) if self.keep else {}
        if self.first_model is not None:
            held[MODEL] = self.model(device)  # all rows of a file hold the same arrays
        self._keep(device, held)

    def model(self, device: int) -> Vector:
        """The model that a device had after it trained last."""
        assert self.first_model is not None
        return (self._held(device) or {}).get(MODEL, self.first_model)

    def put_model(self, device: int, model: Vector) -> None:
        """Keep a device's own model, where that is asked for."""
        if self.first_model is not None:
            self._keep(device, {**(self._held(device) or {}), MODEL: model})

    def _held(self, device: int) -> OptimiserState | None:
        """All that a device keeps."""
        with self._lock:
            if device in self._fresh or device not in self._places:
                return self._fresh.get(device)
            number, row = self._places[device]
            (state,) = read_states(self._files[number].path, [row])
            return state

    def _keep(self, device: int, held: OptimiserState) -> None:
        with self._lock:
            self._put(device, held)
            if self._fresh_bytes > MEMORY_BYTES:
                self._to_disk()

    def _put(self, device: int, state: OptimiserState) -> None:
        self._fresh_bytes += _size(state) - _size(self._fresh.get(device, {}))
        self._fresh[device] = state
        if device in self._places:
            number, _ = self._places.pop(device)
            self._current[number] -= 1

    def export(self) -> dict[str, NDArray[np.float32]]:
        """All states under names such as `17/exp_avg`."""
        return {
            f"{device}/{name}": value
            for device in sorted({*self._fresh, *self._places})
            for name, value in (self._held(device) or {}).items()
        }

    def restore(self, arrays: dict[str, NDArray[np.float32]]) -> None:
        """Restore what `export` returned."""
        states: dict[int, OptimiserState] = {}
        for key, value in arrays.items():
            device, _, name = key.partition("/")
            states.setdefault(int(device), {})[name] = value
        with self._lock:
            self._clear()
            for number, state in states.items():
                self._put(number, state)
                if self._fresh_bytes > MEMORY_BYTES:
                    self._to_disk()

    @property
    def small(self) -> bool:
        """True if the states are small enough to be written with every checkpoint."""
        return not self._files and self._fresh_bytes <= INLINE_BYTES

    def save(self) -> list[StateFile]:
        """Write what changed since the last call; returns the files that contain all states.

        Files returned earlier are not changed, as a checkpoint names them.
        """
        with self._lock:
            if self._fresh:
                self._to_disk()
            self._saved = set(self._files)
            return list(self._files.values())

    def reopen(self, files: Sequence[tuple[StateFile, Contents]]) -> None:
        """Restore what `save` returned, in the same order, with the contents of the files."""
        with self._lock:
            self._clear()
            for file, (devices, _) in files:
                number = file_number(file.path.name)
                self._files[number] = file
                self._place(number, devices.tolist())
                self._next = number + 1
            self._saved = set(self._files)

    def _place(self, number: int, devices: list[int]) -> None:
        for row, device in enumerate(devices):
            if device in self._places:
                self._current[self._places[device][0]] -= 1
            self._places[device] = number, row
        self._current[number] = len(devices)

    def _to_disk(self) -> None:
        """Write the states in memory to a file; merge or rewrite files where that pays."""
        self._write_fresh()
        while sum(one.rows for one in self._files.values()) > 2 * len(self._places):
            self._rewrite([min(self._files, key=lambda n: self._current[n] / self._files[n].rows)])
        small = [n for n, one in self._files.items() if one.path.stat().st_size < MEMORY_BYTES // 2]
        if len(small) > SMALL_FILES:
            self._rewrite(sorted(small, key=lambda n: self._current[n])[: SMALL_FILES // 2])

    def _rewrite(self, numbers: list[int]) -> None:
        """Move the current rows of these files to new files."""
        of_file: dict[int, list[tuple[int, int]]] = {number: [] for number in numbers}
        for device, (number, row) in self._places.items():
            if number in of_file:
                of_file[number].append((device, row))
        for number, held in of_file.items():
            file = self._files[number]
            for (device, _), state in zip(
                held, read_states(file.path, [row for _, row in held]), strict=True
            ):
                self._put(device, state)
            if self._fresh_bytes > MEMORY_BYTES // 2:
                self._write_fresh()
        self._write_fresh()
        for number in numbers:
            file = self._files.pop(number)
            del self._current[number]
            if number not in self._saved:
                file.path.unlink(missing_ok=True)

    def _write_fresh(self) -> None:
        states = {device: state for device, state in self._fresh.items() if state}
        if states:
            path = self._place_for_files() / file_name(self._next)
            try:
                own_folder(path.parent)
                digest = write_states(path, states)
            except OSError as error:
                raise RunError(
                    f"the states of devices cannot be written to {path.parent} "
                    f"({error.strerror}): free some space, then `slimfl resume` continues after "
                    "the last complete round"
                ) from error
            self._files[self._next] = StateFile(path, digest, len(states))
            self._place(self._next, list(states))
            self._next += 1
        self._fresh, self._fresh_bytes = {}, 0

    def _place_for_files(self) -> Path:
        if self.folder is not None:
            return self.folder
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="slimfl-states-")
        return Path(self._temporary.name)


def file_name(number: int) -> str:
    """The name of the file with that number."""
    return f"devices-{number:08d}.safetensors"


def file_number(name: str) -> int:
    """The number in a file's name; ValueError for other names."""
    number = int(name.removeprefix("devices-").removesuffix(".safetensors"))
    if file_name(number) != name:
        raise ValueError(f"{name} is not the name of a file of states")
    return number


def _size(state: OptimiserState) -> int:
    return sum(value.nbytes for value in state.values())


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
