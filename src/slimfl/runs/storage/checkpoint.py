"""Checkpoints: safetensors with the state as JSON, written atomically, with a checksum.

The states of many devices are too large to write in every round. They are stored in separate files
beside the checkpoints, each written once. A checkpoint names its files with their checksums, and a
file stays as long as a kept checkpoint names it.
"""

import hashlib
import json
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from slimfl.engines.device_states import (
    Contents,
    StateFile,
    UnreadableStatesError,
    file_number,
    read_contents,
)
from slimfl.errors import RequestError
from slimfl.experiment import Experiment, round_dependencies
from slimfl.files import (
    open_plain,
    own_folder,
    parse_json,
    remove_leftovers,
    sha256,
    write_atomically,
)

log = logging.getLogger(__name__)

#: Key of the checksum of the metrics up to the round of a checkpoint.
LINES = "metrics_sha256"

#: The newest may be damaged, so the one before it is kept.
KEPT = 2

Tensors = dict[str, NDArray[Any]]

#: Key in a checkpoint's state for the values that its rounds depend on.
MADE_WITH = "made_with"

_WAY_OUT = (
    "restore the original settings, start the changed experiment in a new folder with `slimfl "
    "run`, or delete the checkpoints to start over"
)


@dataclass(frozen=True)
class Checkpoint:
    """Everything a run needs to go on after `round`."""

    round: int
    tensors: Tensors
    state: dict[str, Any]
    device_files: Sequence[tuple[StateFile, Contents]] = ()
    """Files with the states of the devices, if these are not among the tensors. Only set when
    read."""


class DamagedCheckpointError(Exception):
    """A checkpoint whose contents are not what was written."""


def made_with(experiment: Experiment, data_sha256: str) -> dict[str, Any]:
    """The values that the rounds of a run depend on, for its checkpoints.

    Data is identified by its contents, as the name of a dataset's folder may change.
    """
    values = round_dependencies(experiment)
    values.pop("data.dataset", None)
    values.pop("population.file", None)  # provenance has the checksum of its contents
    return {MADE_WITH: {**values, "data.sha256": data_sha256}}


def check_made_with(checkpoint: Checkpoint, experiment: Experiment, data_sha256: str) -> None:
    """Refuse a checkpoint whose rounds were made with other settings or data."""
    here = made_with(experiment, data_sha256)[MADE_WITH]
    there = checkpoint.state.get(MADE_WITH, here)
    if not isinstance(there, dict):
        raise does_not_fit(checkpoint)
    changes = [
        f"{key} was {_value(there, key)} and is {_value(here, key)}"
        for key in sorted({*here, *there})
        if _value(there, key) != _value(here, key)
    ]
    if changes:
        raise RequestError(
            f"the checkpoint of round {checkpoint.round} was made with settings that differ from "
            f"experiment.toml ({', '.join(changes)}); {_WAY_OUT}"
        )


def _value(values: dict[str, Any], key: str) -> str:
    return json.dumps(values[key], sort_keys=True) if key in values else "the default"


def does_not_fit(checkpoint: Checkpoint, part: str = "model") -> RequestError:
    """The refusal of a checkpoint whose arrays cannot be those of the run."""
    return RequestError(
        f"the checkpoint of round {checkpoint.round} does not fit this run: its arrays of the "
        f"{part} have other names, types or shapes; {_WAY_OUT}"
    )


def device_files_state(files: Sequence[StateFile]) -> dict[str, Any]:
    """The part of a checkpoint's state that names its device files."""
    return {"device_files": {file.path.name: file.sha256 for file in files}}


def write(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint, then remove files that no kept checkpoint needs."""
    own_folder(folder)
    state = json.dumps({"round": checkpoint.round, **checkpoint.state}, sort_keys=True)
    digest = _digest(state, checkpoint.tensors)
    contents = _ordered(save(checkpoint.tensors, {"state": state, "sha256": digest}))
    path = file_of(folder, checkpoint.round)
    write_atomically(path, contents)
    _tidy(folder, path.name)


def _ordered(contents: bytes) -> bytes:
    """The same file with sorted metadata, whose order differs from one `save` to the next."""
    size = int.from_bytes(contents[:8], "little")
    header = json.loads(contents[8 : 8 + size])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # as safetensors aligns the tensors
    return b"".join((len(text).to_bytes(8, "little"), text, memoryview(contents)[8 + size :]))


def newest(
    folder: Path, at_most: int | None = None, digest: Callable[[int], str] | None = None
) -> Checkpoint | None:
    """The newest intact checkpoint; damaged ones are skipped with a warning.

    With `at_most`, those of later rounds are skipped as well. `digest` gives the checksum of the
    metrics up to a round; checkpoints that were written beside other metrics count as damaged.
    """
    if not os.path.lexists(folder):
        return None
    own_folder(folder)
    for path in _newest_first(folder):
        if at_most is not None and path.name > file_of(folder, at_most).name:
            continue
        try:
            found = _read(path)
            if path != file_of(folder, found.round):
                raise DamagedCheckpointError(f"it is from round {found.round}")
            if digest is not None and found.state.get(LINES) not in (None, digest(found.round)):
                raise DamagedCheckpointError("the metrics before it have changed")
            return found
        except DamagedCheckpointError as error:
            log.warning("checkpoint %s is damaged (%s); using the one before it", path.name, error)
    return None


def newest_digest(folder: Path, at_most: int) -> tuple[int, str] | None:
    """The round of the newest checkpoint up to `at_most`, and its checksum of the metrics.

    None if there is none; earlier versions wrote no checksum.
    """
    for path in _newest_first(folder):
        if path.name > file_of(folder, at_most).name:
            continue
        try:
            state = _state(path)
        except (DamagedCheckpointError, RequestError, OSError):  # it may be removed meanwhile
            continue
        digest = state.get(LINES)
        return (state["round"], digest) if isinstance(digest, str) else None
    return None


def file_of(folder: Path, round: int) -> Path:
    """Path of the checkpoint of a round."""
    return folder / f"round-{round:08d}.safetensors"


def newest_round(folder: Path) -> int:
    """The round of the newest checkpoint, intact or not; 0 without one."""
    names = (path.stem.removeprefix("round-") for path in _newest_first(folder))
    return next((int(name) for name in names if name.isdecimal()), 0)


def discard_after(folder: Path, round: int) -> None:
    """Remove the checkpoints of later rounds and incomplete files left by a kill."""
    for path in _newest_first(folder):
        if path.name > file_of(folder, round).name:
            path.unlink(missing_ok=True)
    remove_leftovers(folder, r"(round|devices)-\d+\.safetensors")


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("round-*.safetensors"), reverse=True)


def _tidy(folder: Path, written: str) -> None:
    """Remove old checkpoints, then files that no remaining one names, then leftovers.

    Checkpoints of later rounds than the one just written were skipped and their rounds are run
    again, so they must not count as the newest.
    """
    found = _newest_first(folder)
    checkpoints = [path for path in found if path.name <= written]
    for path in (*(path for path in found if path.name > written), *checkpoints[KEPT:]):
        path.unlink(missing_ok=True)
    files = list(folder.glob("devices-*.safetensors"))
    if files:
        needed = {name for path in checkpoints[:KEPT] for name in _named_files(path)}
        for file in files:
            if file.name not in needed:
                file.unlink(missing_ok=True)
    remove_leftovers(folder, r"(round|devices)-\d+\.safetensors")


def _named_files(path: Path) -> list[str]:
    """The files that a checkpoint names; none if it is damaged."""
    try:
        return list(_state(path).get("device_files", {}))
    except DamagedCheckpointError:
        return []


def _read(path: Path) -> Checkpoint:
    state = _state(path)
    try:
        with safe_open(path, "numpy") as file:
            metadata = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, TypeError) as error:
        raise DamagedCheckpointError(str(error)) from None
    if metadata.get("sha256") != _digest(metadata["state"], tensors):
        raise DamagedCheckpointError("its checksum differs")
    if path.name != f"round-{state['round']:08d}.safetensors":
        raise DamagedCheckpointError(f"it is from round {state['round']}")
    files = [
        _device_file(path.parent, name, digest)
        for name, digest in sorted(state.get("device_files", {}).items())
    ]
    return Checkpoint(state["round"], tensors, state, files)


def _state(path: Path) -> dict[str, Any]:
    open_plain(path, "rb").close()
    try:
        with safe_open(path, "numpy") as file:
            state: dict[str, Any] = parse_json((file.metadata() or {})["state"])
        if type(state["round"]) is not int or state["round"] < 0:
            raise ValueError("it names no round")
        if not isinstance(state.get("device_files", {}), dict):
            raise ValueError("it names no device files")
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise DamagedCheckpointError(str(error)) from None
    return state


def _device_file(folder: Path, name: str, digest: str) -> tuple[StateFile, Contents]:
    try:
        file_number(name)
        if sha256(folder / name) != digest:
            raise DamagedCheckpointError(f"the checksum of {name} differs")
        contents = read_contents(folder / name)
    except (OSError, ValueError, UnreadableStatesError) as error:
        raise DamagedCheckpointError(f"{name}: {error}") from None
    return StateFile(folder / name, digest, len(contents[0])), contents


def _digest(state: str, tensors: Tensors) -> str:
    digest = hashlib.sha256(state.encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(tensors[name]).tobytes())
    return digest.hexdigest()
