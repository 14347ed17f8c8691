"""The archive of runs, from which a clone shows results and continues runs.

    ARCHIVE/NAME/cell.json                      rounds, checksums, and what made the rounds
    ARCHIVE/NAME/experiment.toml
    ARCHIVE/NAME/partition.json
    ARCHIVE/NAME/metrics.jsonl.xz
    ARCHIVE/NAME/checkpoint.safetensors.xz      the newest

The finished runs of a plan are together in one file, without models: nobody continues them, and a
run is repeated to the last bit from its experiment.

    lab/archive/PLAN.tar.xz                     per run: experiment, rounds, devices, partition,
                                                and which version of the plan asked for it

File names are fixed here and never read from an archive, every file must have its checksum, and the
experiment must be the one that was asked for. Unpacked, a cell is a run folder like any other.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import shutil
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from lab import made_with
from lab.cell import Cell
from slimfl.errors import RequestError
from slimfl.experiment import same_rounds
from slimfl.files import read_json, read_regular, sync_folder, write_atomically
from slimfl.round import RoundRecord, RunFolder
from slimfl.runs.storage.run_folder import CHECKPOINTS, EXPERIMENT, METRICS, PARTITION

ROOT = Path("results")
MANIFEST, CHECKPOINT = "cell.json", "checkpoint.safetensors"
PLANS = Path(__file__).parent / "archive"
#: Folder of a cache with the stamps of planned runs.
STAMPS = "stamps"
#: What is kept of a cell, and of a planned run.
FILES = (EXPERIMENT, PARTITION, METRICS, CHECKPOINT)
PLANNED = (EXPERIMENT, METRICS, "devices.csv", PARTITION)
#: Filters of what is compressed; the second are tuned to numbers of four bytes.
FILTERS = {
    METRICS: [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}],
    CHECKPOINT: [{"id": lzma.FILTER_LZMA2, "preset": 9, "lc": 0, "lp": 2, "pb": 2}],
}
#: Maximum size of a file when unpacked.
MOST_BYTES = 300_000_000
#: Maximum memory of unpacking it.
MOST_MEMORY_BYTES = 200_000_000

#: Folders in which cells are unpacked, and the age after which nobody is at work in one any more.
SCRATCH, STALE_S = ".unpacking-", 3600


class _Stretch(BaseModel):
    model_config = ConfigDict(strict=True)

    until: Annotated[int, Field(ge=1)]
    engine: str
    weights: str
    gains: str
    versions: dict[str, str]


class _Manifest(BaseModel):
    model_config = ConfigDict(strict=True)

    rounds: Annotated[int, Field(ge=1)]
    made: Annotated[list[_Stretch], Field(min_length=1)]
    files: dict[str, str]


@dataclass(frozen=True)
class ArchivedCell:
    """One cell in the archive."""

    folder: Path
    manifest: dict[str, Any]

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        rounds: int = self.manifest["rounds"]
        return rounds

    @property
    def made(self) -> list[dict[str, Any]]:
        """How its rounds were made: for each stretch its last round, engine and versions."""
        made: list[dict[str, Any]] = self.manifest["made"]
        return made

    @property
    def size_bytes(self) -> int:
        """Size on disk."""
        return sum(path.stat().st_size for path in self.folder.iterdir() if path.is_file())

    @cached_property
    def lines(self) -> list[RoundRecord]:
        """Its metrics, also if they were changed together with their checksum."""
        with self.unpacked() as folder:
            lines = folder.intact_metrics().lines
        if len(lines) != self.rounds:
            raise self.damaged(METRICS)
        return lines

    @contextmanager
    def unpacked(self, beside: Path | None = None) -> Iterator[RunFolder]:
        """The cell as a run folder for some time, in another folder if one is given."""
        with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=beside) as scratch:
            folder = Path(scratch) / self.folder.name
            _checkpoint_path(folder, self.rounds).parent.mkdir(parents=True)
            for name in FILES:
                newest = _checkpoint_path(folder, self.rounds)
                write_atomically(newest if name == CHECKPOINT else folder / name, self.read(name))
            yield RunFolder(folder)

    def read(self, name: str) -> bytes:
        """The original contents of one of its files, which must have the checksum."""
        try:
            raw = read_regular(self.folder / _stored(name), MOST_BYTES)
            if name in FILTERS:
                decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_MEMORY_BYTES)
                raw = decoder.decompress(raw, MOST_BYTES)
        except (OSError, lzma.LZMAError, EOFError):
            raw = b""
        if hashlib.sha256(raw).hexdigest() != self.manifest["files"][name]:
            raise self.damaged(name)
        return raw

    def damaged(self, name: str) -> RequestError:
        """What to say of a file that cannot be used."""
        return RequestError(
            f"{name} of {self.folder} is damaged; restore the folder, or remove it and pack the "
            "run again on the machine that has it"
        )


def find(archive: Path, cell: Cell) -> ArchivedCell | None:
    """A cell's entry, of which only the description is read; None if there is none."""
    path = archive / cell.name / MANIFEST
    if not path.is_file():
        return None
    try:
        manifest = _Manifest.model_validate(read_json(path)).model_dump()
        manifest["files"] = {name: manifest["files"][name] for name in FILES}
    except (OSError, ValueError, KeyError):
        raise RequestError(f"{path} is damaged; restore the folder, or remove it") from None
    return ArchivedCell(path.parent, manifest)


def pack(cell: Cell, cache: Path, archive: Path) -> ArchivedCell | None:
    """Put a cell into the archive; None if the archive has as many rounds or more.

    A run in progress is packed up to its newest checkpoint.
    """
    source = cell.folder(cache)
    if not (source / EXPERIMENT).is_file():
        return None
    folder = RunFolder.open(source)
    _check_fits(cell, folder)
    newest = folder.checkpoint()
    before = find(archive, cell)
    if newest is None or (before is not None and before.rounds >= newest.round):
        return None
    rounds = newest.round
    # a round's line is written before its checkpoint, so the lines exist
    lines = (source / METRICS).read_bytes().splitlines(keepends=True)[:rounds]
    try:
        files = {
            EXPERIMENT: (source / EXPERIMENT).read_bytes(),
            PARTITION: (source / PARTITION).read_bytes(),
            METRICS: b"".join(lines),
            CHECKPOINT: _checkpoint_path(source, rounds).read_bytes(),
        }
    except FileNotFoundError:
        return None  # two rounds have passed meanwhile; the next call packs them
    target = archive / cell.name
    target.mkdir(parents=True, exist_ok=True)
    for name, contents in files.items():
        packed = lzma.compress(contents, filters=FILTERS[name]) if name in FILTERS else contents
        write_atomically(target / _stored(name), packed)
    manifest = {
        "format": 1,
        "rounds": rounds,
        "made": _made(before, rounds, folder),
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }
    # last: until then the checksums are those of the old files, so an interruption is noticed
    write_atomically(target / MANIFEST, json.dumps(manifest, indent=1).encode() + b"\n")
    return find(archive, cell)


def unpack(cell: Cell, archive: Path, cache: Path) -> bool:
    """Put a cell from the archive into the cache, unless the cache has as many rounds or more."""
    found = find(archive, cell)
    folder = cell.folder(cache)
    if found is None or cell.job(cache).rounds_done >= found.rounds:
        return False
    cache.mkdir(parents=True, exist_ok=True)
    for left in cache.glob(f"{SCRATCH}*"):  # of a process that was killed while it unpacked
        if time.time() - left.stat().st_mtime > STALE_S and not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)
    with found.unpacked(beside=cache) as fresh:
        _check_fits(cell, fresh)
        newest = fresh.checkpoint()
        if newest is None or not newest.round == len(fresh.metrics()) == found.rounds:
            raise found.damaged(CHECKPOINT)
        if not folder.exists():
            fresh.path.rename(folder)
            sync_folder(cache)
            return True
        return _advance(RunFolder(folder), fresh.path, found.rounds)


def _advance(folder: RunFolder, fresh: Path, rounds: int) -> bool:
    """Replace an existing run by the newer rounds, unless it is being written."""
    if folder.in_use():
        return False
    with folder.writing():
        for name in (PARTITION, METRICS, EXPERIMENT):
            (fresh / name).replace(folder.path / name)
        target = _checkpoint_path(folder.path, rounds)
        target.parent.mkdir(exist_ok=True)
        sync_folder(folder.path)
        _checkpoint_path(fresh, rounds).replace(target)
        sync_folder(target.parent)
    return True


def _check_fits(cell: Cell, folder: RunFolder) -> None:
    if not same_rounds(folder.experiment(), cell.grown):
        where = folder.path.name
        raise RequestError(f"{where} has an experiment that does not match its name; move it away")


def _made(before: ArchivedCell | None, rounds: int, folder: RunFolder) -> list[dict[str, Any]]:
    """How the rounds were made: earlier ones as in the archive, new ones on this machine."""
    made = list(before.made) if before else []
    here = made_with.here()
    if not made:  # the run folder records the versions that it began with
        here["versions"] = folder.provenance().get("versions", here["versions"])
    if made and {**made[-1], **here} == made[-1]:
        made.pop()
    return [*made, {"until": rounds, **here}]


def _stored(name: str) -> str:
    return f"{name}.xz" if name in FILTERS else name


def _checkpoint_path(folder: Path, rounds: int) -> Path:
    return folder / CHECKPOINTS / f"round-{rounds:08d}.safetensors"


# The runs of a plan, together


def stamp_of(cell: Cell, cache: Path) -> Path:
    """Where it is written which plan asked for a run."""
    return cache / STAMPS / f"{cell.folder(cache).name}.json"


def pack_plan(path: Path, cells: Sequence[Cell], cache: Path) -> None:
    """Write finished runs into one file; the same runs give the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = [cell.folder(cache) / name for cell in cells for name in PLANNED]
    kept += [stamp_of(cell, cache) for cell in cells]
    with tarfile.open(path, "w:xz", preset=9) as tar:
        for each in sorted(each for each in kept if each.is_file()):
            contents = each.read_bytes()
            member = tarfile.TarInfo(each.relative_to(cache).as_posix())
            member.size = len(contents)
            tar.addfile(member, io.BytesIO(contents))


def unpack_plan(path: Path, cells: Sequence[Cell], cache: Path) -> None:
    """Restore those of some runs that the cache does not have."""
    if not path.is_file():
        return
    wanted = {cell.folder(cache).name for cell in cells}
    with tarfile.open(path, "r:xz") as tar:
        for member in tar:
            folder, name = PurePosixPath(member.name).parts
            run = name.removesuffix(".json") if folder == STAMPS else folder
            if run in wanted and not (cache / member.name).exists():
                tar.extract(member, cache, filter="data")
