"""Checkpoints: safetensors with the state as JSON, replaced in one step, proved by a checksum."""

import hashlib
import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

log = logging.getLogger(__name__)

#: The newest may be damaged, so the one before it stays.
KEPT = 2

Tensors = dict[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Checkpoint:
    """Everything a run needs to go on after `round`."""

    round: int
    tensors: Tensors
    state: dict[str, Any]


class DamagedCheckpointError(Exception):
    """A checkpoint whose contents are not what was written."""


def write(folder: Path, checkpoint: Checkpoint) -> None:
    """Write to a temporary name, rename, then remove what is older than the kept ones."""
    folder.mkdir(exist_ok=True)
    state = json.dumps({"round": checkpoint.round, **checkpoint.state}, sort_keys=True)
    digest = _digest(state, checkpoint.tensors)
    contents = save(checkpoint.tensors, {"state": state, "sha256": digest})
    final = file_of(folder, checkpoint.round)
    temporary = final.with_suffix(".tmp")
    try:
        write_durably(temporary, contents)
        temporary.rename(final)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(folder)
    for old in _newest_first(folder)[KEPT:]:
        old.unlink(missing_ok=True)


def newest(folder: Path, at_most: int | None = None) -> Checkpoint | None:
    """The newest intact checkpoint; a damaged one is passed over with a warning.

    With `at_most`, one of a later round is passed over as well.
    """
    for path in _newest_first(folder):
        if at_most is not None and path.name > file_of(folder, at_most).name:
            continue
        try:
            found = _read(path)
            if path != file_of(folder, found.round):
                raise DamagedCheckpointError(f"it is of round {found.round}")
            return found
        except DamagedCheckpointError as error:
            log.warning("checkpoint %s is damaged (%s); using the one before it", path.name, error)
    return None


def file_of(folder: Path, round: int) -> Path:
    """Where the checkpoint of a round is."""
    return folder / f"round-{round:08d}.safetensors"


def newest_round(folder: Path) -> int:
    """The round of the newest checkpoint, intact or not; 0 without one."""
    names = (path.stem.removeprefix("round-") for path in _newest_first(folder))
    return next((int(name) for name in names if name.isdecimal()), 0)


def discard_after(folder: Path, round: int) -> None:
    """Remove the checkpoints of later rounds, and what a kill left half written."""
    later = [path for path in _newest_first(folder) if path.name > file_of(folder, round).name]
    for path in [*later, *folder.glob("round-*.tmp")]:
        path.unlink(missing_ok=True)


def write_durably(path: Path, contents: bytes) -> None:
    """Write a file and wait until it is on the disk."""
    with path.open("wb") as file:
        file.write(contents)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until a rename in the folder is on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("round-*.safetensors"), reverse=True)


def _read(path: Path) -> Checkpoint:
    try:
        with safe_open(path, "numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        state = json.loads(metadata["state"])
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise DamagedCheckpointError(str(error)) from None
    if metadata.get("sha256") != _digest(metadata["state"], tensors):
        raise DamagedCheckpointError("its checksum differs")
    return Checkpoint(state["round"], tensors, state)


def _digest(state: str, tensors: Tensors) -> str:
    digest = hashlib.sha256(state.encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(tensors[name]).tobytes())
    return digest.hexdigest()
