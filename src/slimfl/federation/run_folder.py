"""A run on disk: what was asked, what happened in every round, and where to go on.

    experiment.toml   the experiment with every value resolved, and what it ran on
    partition.json    samples of each class on every device
    metrics.jsonl     one line a round; the truth
    checkpoints/      the newest two
    run.log           what happened otherwise

A round's line is on disk before its checkpoint, so after a kill at any moment the newest checkpoint
never knows more than the metrics, and lines after it belong to a round that will be run again.
"""

import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Self

from slimfl import config
from slimfl.config import Experiment
from slimfl.errors import RequestError, RunError
from slimfl.federation import checkpoint as checkpoints
from slimfl.federation import record
from slimfl.federation.checkpoint import Checkpoint, sync_folder, write_durably
from slimfl.federation.record import Line as Line

EXPERIMENT, METRICS, PARTITION = "experiment.toml", "metrics.jsonl", "partition.json"

#: Looking whether a folder is in use takes no longer than this.
LOOK_S = 0.2


class RunFolder:
    """Read a run; write to it inside `writing()`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path, experiment: Experiment, provenance: dict[str, Any]) -> Self:
        """A new folder that holds the experiment alone."""
        if (path / EXPERIMENT).exists():
            raise RequestError(
                f"{path} holds a run already; go on with `slimfl resume {path}`, "
                "or choose another --out"
            )
        with _disk_errors(path):
            path.mkdir(parents=True, exist_ok=True)
            temporary = path / f"{EXPERIMENT}.tmp"
            write_durably(temporary, config.dump(experiment, **provenance).encode())
            temporary.rename(path / EXPERIMENT)
            sync_folder(path)
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
        """What was asked."""
        return config.build(self._tree()[0])

    def provenance(self) -> dict[str, Any]:
        """Versions and data checksum at the time the run was made."""
        return self._tree()[1]

    def _tree(self) -> tuple[dict[str, Any], dict[str, Any]]:
        tree = config.read_toml(self.path / EXPERIMENT)
        provenance = tree.pop("provenance", {})
        record.check_provenance(provenance, self.path / EXPERIMENT)
        return tree, provenance

    def metrics(self) -> list[Line]:
        """The lines of all complete rounds; a torn last line is left out."""
        return record.read(self.path / METRICS, self.experiment())

    def write_partition(self, class_counts: list[list[int]]) -> None:
        """Record how many samples of each class every device holds."""
        with _disk_errors(self.path):
            temporary = self.path / f"{PARTITION}.tmp"
            write_durably(temporary, json.dumps({"class_counts": class_counts}).encode())
            temporary.rename(self.path / PARTITION)

    def class_counts(self) -> list[list[int]]:
        """Samples [device][class]; empty before the run has begun."""
        return record.read_class_counts(self.path / PARTITION, self.experiment())

    @contextmanager
    def writing(self) -> Iterator["RunWriter"]:
        """Hold the folder for writing; a second writer is refused."""
        with _disk_errors(self.path), (self.path / ".lock").open("w") as lock:
            deadline = time.monotonic() + LOOK_S
            while not _locked(lock, fcntl.LOCK_EX):
                # somebody may just be looking whether the folder is in use
                if time.monotonic() > deadline:
                    raise RequestError(
                        f"another process is writing to {self.path}; wait for it or stop it"
                    )
                time.sleep(0.01)
            yield RunWriter(self.path)

    def in_use(self) -> bool:
        """Whether somebody is writing to it."""
        try:
            with (self.path / ".lock").open() as lock:
                return not _locked(lock, fcntl.LOCK_SH)
        except FileNotFoundError:
            return False

    def checkpoint(self) -> Checkpoint | None:
        """The newest intact checkpoint."""
        return checkpoints.newest(self.path / "checkpoints")


def _locked(file: IO[str], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


class RunWriter:
    """Appends rounds to a run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def keep_until(self, round: int) -> list[Line]:
        """Cut the metrics after a round, where a checkpoint goes on; returns the lines kept."""
        path = self.path / METRICS
        if not path.exists():
            return []
        kept: list[Line] = []
        size = 0
        with path.open("rb+") as file:
            for raw in file:
                try:
                    line = json.loads(raw) if raw.endswith(b"\n") else None
                except ValueError:
                    line = None
                if line is None or line["round"] > round:
                    break
                kept.append(line)
                size += len(raw)
            file.truncate(size)
            os.fsync(file.fileno())
        return kept

    def append(self, line: Line) -> None:
        """Add a round's line, whole or not at all."""
        raw = json.dumps(line, allow_nan=False).encode() + b"\n"
        descriptor = os.open(self.path / METRICS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            size = os.fstat(descriptor).st_size
            try:
                if os.write(descriptor, raw) != len(raw):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, size)
                raise
        finally:
            os.close(descriptor)

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint and drop the oldest."""
        checkpoints.write(self.path / "checkpoints", checkpoint)


#: What a path or its rights are to blame for.
_REFUSED = (
    errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.EEXIST,
    errno.EINVAL, errno.ELOOP, errno.ENAMETOOLONG, errno.EILSEQ,
)  # fmt: skip


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    """A full or failing disk ends the run with one sentence; what was written stays intact."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise RunError(
                f"the disk is full ({path}): make room, then `slimfl resume {path}` goes on from "
                "the last complete round"
            ) from error
        if error.errno in _REFUSED:
            raise RequestError(
                f"{path} cannot be written ({error.strerror}); choose another --out"
            ) from error
        raise
