"""A run on disk: the experiment, the record of every round, and checkpoints.

    experiment.toml   the experiment with every value resolved, and what it ran on
    partition.json    samples of each class on every device
    devices.csv       the devices, if they are not all identical
    metrics.jsonl     one line per round, without gaps; everything else follows from it
    checkpoints/      the newest two
    run.log           warnings and errors
    trackers.json     the ids of the run in MLflow and Weights & Biases, if it is tracked there

A round's line is on disk before its checkpoint. So after a kill the newest checkpoint is never
ahead of the metrics, and lines after it belong to rounds that will be run again. If lines were lost
in another way, a checkpoint that is ahead of them is useless: the run continues from an older one,
or starts over.
"""

import errno
import fcntl
import hashlib
import json
import os
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Self

from slimfl import experiment as config
from slimfl.devices import Population, read_devices, write_devices
from slimfl.errors import RequestError, RunError
from slimfl.experiment import FIRST_DEFAULTS, Experiment
from slimfl.files import open_plain, plain_descriptor, sync_folder, write_atomically
from slimfl.runs.storage import checkpoint as checkpoints
from slimfl.runs.storage import record
from slimfl.runs.storage.checkpoint import Checkpoint
from slimfl.runs.storage.record import IntactLines, RoundRecord

EXPERIMENT, METRICS, PARTITION, LOCK = "experiment.toml", "metrics.jsonl", "partition.json", ".lock"
CHECKPOINTS, DEVICES = "checkpoints", "devices.csv"


class RunFolder:
    """Read a run; write to it inside `writing()`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path, experiment: Experiment, provenance: dict[str, Any]) -> Self:
        """Create a folder that holds only the experiment."""
        with disk_errors(path, "start it again"):
            return cls.write_new(path, config.dump(experiment, **provenance))

    @classmethod
    def write_new(cls, path: Path, text: str) -> Self:
        """Create a folder with this experiment.toml; one without an experiment counts as empty."""
        path.mkdir(parents=True, exist_ok=True)
        with _lock(path):
            if (path / EXPERIMENT).exists():
                raise RequestError(
                    f"{path} already has a run; continue it with `{resume_command(path)}`, or "
                    "choose another --out"
                )
            write_atomically(path / EXPERIMENT, text.encode())
        with suppress(PermissionError):  # a folder may be writable and not readable
            sync_folder(path.parent)
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> Self:
        """An existing folder."""
        if not (path / EXPERIMENT).is_file():
            raise RequestError(f"{path} is not a run folder: it has no {EXPERIMENT}")
        return cls(path)

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.path.name

    def experiment(self) -> Experiment:
        """The experiment that was asked for."""
        tree, _ = self._tree()
        try:
            return config.build(tree)
        except RequestError as error:
            raise RequestError(f"{self.path / EXPERIMENT}: {error}") from None

    def provenance(self) -> dict[str, Any]:
        """Versions and data checksum at the time the run was made."""
        return self._tree()[1]

    def _tree(self) -> tuple[dict[str, Any], dict[str, Any]]:
        tree = config.read_toml(self.path / EXPERIMENT)
        record.check_whole(tree, self.path / EXPERIMENT)
        provenance = tree.pop("provenance")
        for key, value in FIRST_DEFAULTS.items():
            section, _, name = key.partition(".")
            tree[section].setdefault(name, value)
        return tree, provenance

    def with_rounds(self, rounds: int) -> Experiment:
        """The experiment with another number of rounds; refused if there is no such one."""
        return config.build({**self._tree()[0], "rounds": rounds})

    def change_rounds(self, rounds: int) -> None:
        """Write another number of rounds into the experiment; nothing else changes."""
        with self.writing():
            experiment = self.with_rounds(rounds)
            contents = config.dump(experiment, **self.provenance()).encode()
            write_atomically(self.path / EXPERIMENT, contents)

    def metrics(self) -> list[RoundRecord]:
        """The lines of all complete rounds; an incomplete last line is left out."""
        found = self.intact_metrics()
        if found.damage:
            raise RequestError(
                f"{found.damage}; `{resume_command(self.path)}` repeats the rounds from there"
            )
        return found.lines

    def intact_metrics(self) -> IntactLines:
        """The lines before the first that is damaged, missing or repeated.

        Where a line has changed is unknown: then it is in `damage`, and all lines are there.
        """
        found = record.read_intact(self.path / METRICS, self.experiment())
        if found.damage is None and (rounds := self._changed_before(len(found.lines))):
            path = self.path / METRICS
            words = f"{path} has changed in its first {rounds} lines since they were written"
            return replace(found, damage=words)
        return found

    def write_partition(self, class_counts: list[list[int]]) -> None:
        """Record how many samples of each class every device holds."""
        contents = json.dumps({"class_counts": class_counts}).encode()
        write_atomically(self.path / PARTITION, contents)

    def write_devices(self, population: Population) -> None:
        """Record the devices with every value resolved."""
        write_devices(self.path / DEVICES, population, self.experiment().model.widths)

    def devices(self) -> Population | None:
        """The recorded devices; None if all are identical."""
        if not (self.path / DEVICES).exists():
            return None
        experiment = self.experiment()
        widths, count = experiment.model.widths, experiment.federation.devices
        return read_devices(self.path / DEVICES, count, widths)

    def class_counts(self) -> list[list[int]]:
        """Samples [device][class]; empty before the run has begun."""
        return record.read_class_counts(self.path / PARTITION, self.experiment())

    @contextmanager
    def writing(self) -> Iterator["RunWriter"]:
        """Hold the folder for writing; a second writer is refused."""
        way_on = f"`{resume_command(self.path)}` continues after the last complete round"
        with disk_errors(self.path, f"then {way_on}"), _lock(self.path):
            yield RunWriter(self.path, self.experiment())

    def in_use(self) -> bool:
        """True if a process is writing to it."""
        try:
            with open_file(self.path / LOCK, os.O_RDONLY) as lock:
                return not try_lock(lock, fcntl.LOCK_SH)
        except OSError:
            return False

    def checkpoint(self, at_most: int | None = None) -> Checkpoint | None:
        """The newest intact checkpoint up to round `at_most`."""
        return checkpoints.newest(self.path / CHECKPOINTS, at_most, self._digest)

    def _changed_before(self, round: int) -> int:
        """Up to which round lines differ from those that a checkpoint belongs to; 0 if none do."""
        found = checkpoints.newest_digest(self.path / CHECKPOINTS, round)
        return found[0] if found is not None and self._digest(found[0]) != found[1] else 0

    def _digest(self, rounds: int) -> str:
        """The checksum of the first lines of the metrics."""
        return _digest_of(self.path / METRICS, self.experiment(), rounds).hexdigest()

    def checkpointed_round(self) -> int:
        """The round of the newest checkpoint, intact or not; 0 without one."""
        return checkpoints.newest_round(self.path / CHECKPOINTS)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with open_file(path / LOCK, os.O_RDWR | os.O_CREAT) as lock, only_writer(lock, path):
        yield


class RunWriter:
    """Appends rounds to a run."""

    def __init__(self, path: Path, experiment: Experiment) -> None:
        self.path, self.experiment = path, experiment
        self._digest = _digest_of(path / METRICS, experiment)

    def keep_until(self, round: int) -> list[RoundRecord]:
        """Drop everything after a round; returns the lines kept."""
        # checkpoints first: after a kill in between, the metrics still show the damage
        checkpoints.discard_after(self.path / CHECKPOINTS, round)
        path = self.path / METRICS
        kept = record.read_intact(path, self.experiment).lines[:round]
        if path.exists():
            with open_plain(path, "rb") as file:
                size = sum(len(file.readline()) for _ in kept)
            with open_file(path, os.O_WRONLY) as descriptor:
                os.ftruncate(descriptor, size)
                os.fsync(descriptor)
        self._digest = _digest_of(path, self.experiment)
        return kept

    def append(self, line: RoundRecord) -> None:
        """Add a round's line, completely or not at all."""
        raw = json.dumps(line.as_json(), allow_nan=False).encode() + b"\n"
        path = self.path / METRICS
        with open_file(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND) as descriptor:
            size = os.fstat(descriptor).st_size
            try:
                rest = raw
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
                os.fsync(descriptor)
            except BaseException:
                os.ftruncate(descriptor, size)
                raise
        self._digest.update(raw)
        if size == 0:
            sync_folder(self.path)

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, with the checksum of the lines so far, and drop the oldest."""
        state = {**checkpoint.state, checkpoints.LINES: self._digest.hexdigest()}
        checkpoints.write(self.path / CHECKPOINTS, replace(checkpoint, state=state))


def _digest_of(metrics: Path, experiment: Experiment, rounds: int | None = None) -> "hashlib._Hash":
    digest = hashlib.sha256()
    with suppress(FileNotFoundError):
        for line in islice(record.raw_lines(metrics, experiment), rounds):
            if not line.endswith(b"\n"):  # longer than any round's; the rest may be gigabytes
                break
            digest.update(line)
    return digest


def resume_command(path: Path) -> str:
    """The command that resumes a folder."""
    return f"slimfl resume {shlex.quote(str(path))}"


@contextmanager
def disk_errors(path: Path, way_on: str) -> Iterator[None]:
    """Turn errors of the disk into one sentence; what was written stays intact."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise RunError(f"the disk is full ({path}); free some space, {way_on}") from error
        if error.errno == errno.EIO:
            raise RunError(f"the disk failed ({path}); check it, {way_on}") from error
        if error.errno in _NOT_WRITABLE:
            raise RequestError(
                f"{path} cannot be written ({error.strerror}); choose another --out"
            ) from error
        raise


#: Errors caused by the path or its permissions.
_NOT_WRITABLE = {
    errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.EEXIST,
    errno.EINVAL, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO, errno.EILSEQ,
}  # fmt: skip


#: Checking whether a folder is in use takes no longer than this.
LOOK_S = 0.2


@contextmanager
def only_writer(descriptor: int, path: Path) -> Iterator[None]:
    """Hold the lock on an open file, which protects `path`; a second holder is refused."""
    deadline = time.monotonic() + LOOK_S
    while not try_lock(descriptor, fcntl.LOCK_EX):
        # another process may only be checking whether it is in use
        if time.monotonic() > deadline:
            raise RequestError(f"another process is writing to {path}; wait for it or stop it")
        time.sleep(0.01)
    yield


@contextmanager
def open_file(path: Path, flags: int) -> Iterator[int]:
    """A descriptor that is closed at the end, which also releases its lock."""
    opened = os.open if flags & os.O_DIRECTORY else plain_descriptor
    descriptor = opened(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def try_lock(descriptor: int, kind: int) -> bool:
    """Take a lock if it is free; `kind` is LOCK_EX to write or LOCK_SH to check."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        # some network disks have no such locks; then no writer is kept out
        if error.errno not in (errno.EBADF, errno.ENOLCK, errno.ENOTSUP, errno.EINVAL):
            raise
    return True
