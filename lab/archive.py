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

An archive may come from a stranger. File names are fixed here and never read from it, every size is
bounded, every file is checked against its checksum, and the experiment must be the requested one.
So nothing in an archive decides what is run.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from lab import made_with
from lab.cell import Cell
from slimfl import experiment as config
from slimfl.errors import RequestError
from slimfl.files import parse_json, parse_toml, sync_folder, write_atomically
from slimfl.radio import outage_link
from slimfl.report.atomic_write import atomic_write
from slimfl.round import RoundRecord, RunFolder
from slimfl.runs.storage.record import DamageError, check_whole, parse_lines
from slimfl.runs.storage.run_folder import EXPERIMENT, METRICS, PARTITION
from slimfl.runs.sweeps import same_rounds

ROOT = Path("results")
MANIFEST, CHECKPOINT = "cell.json", "checkpoint.safetensors"
PLANS = Path(__file__).parent / "archive"
#: Folder of a cache with the stamps of planned runs.
STAMPS = "stamps"
FORMAT = 1
#: Stands for the machine of rounds if none is recorded.
UNKNOWN = "unknown"
#: Maximum size of every file in bytes when unpacked.
LIMITS = {
    MANIFEST: 1_000_000,
    EXPERIMENT: 1_000_000,
    PARTITION: 10_000_000,
    METRICS: 100_000_000,
    CHECKPOINT: 300_000_000,
}
#: What is kept of a cell, and of a planned run.
FILES = (EXPERIMENT, PARTITION, METRICS, CHECKPOINT)
PLANNED = (EXPERIMENT, METRICS, "devices.csv", PARTITION)
COMPRESSED = (METRICS, CHECKPOINT)
#: Tuned to four-byte numbers, whose bytes compress best by position.
_FILTERS = {
    METRICS: [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}],
    CHECKPOINT: [{"id": lzma.FILTER_LZMA2, "preset": 9, "lc": 0, "lp": 2, "pb": 2}],
}
_MEMORY_LIMIT_BYTES = 200_000_000


class _Stretch(BaseModel):
    model_config = ConfigDict(strict=True)

    until: Annotated[int, Field(ge=1)]
    engine: str
    weights: str
    gains: str
    versions: dict[str, str]


class _Manifest(BaseModel):
    model_config = ConfigDict(strict=True)

    format: Literal[1]
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
        """Its metrics."""
        try:
            lines = parse_lines(self.contents(METRICS), self.experiment)
        except DamageError:
            raise self._damaged(METRICS) from None
        if len(lines) != self.rounds:
            raise self._damaged(METRICS)
        return lines

    @cached_property
    def experiment(self) -> config.Experiment:
        """The experiment that was asked for."""
        return config.build({k: v for k, v in self._toml.items() if k != "provenance"})

    @property
    def provenance(self) -> dict[str, Any]:
        """Versions and data checksum when the run began."""
        provenance: dict[str, Any] = self._toml.get("provenance", {})
        return provenance

    @cached_property
    def _toml(self) -> dict[str, Any]:
        try:
            tree = parse_toml(self.contents(EXPERIMENT))
        except ValueError:
            raise self._damaged(EXPERIMENT) from None
        check_whole(tree, self.folder / EXPERIMENT)
        return tree

    def contents(self, name: str) -> bytes:
        """The original contents of one of its files; refused if anything is wrong with it."""
        stored = name + (".xz" if name in COMPRESSED else "")
        raw = _read(self.folder / stored, LIMITS[name])
        if name in COMPRESSED:
            raw = self._decompressed(raw, name)
        if hashlib.sha256(raw).hexdigest() != self.manifest["files"][name]:
            raise self._damaged(name)
        return raw

    def _decompressed(self, raw: bytes, name: str) -> bytes:
        limit = LIMITS[name]
        try:
            decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY_LIMIT_BYTES)
            contents = decoder.decompress(raw, max_length=limit + 1)
        except (lzma.LZMAError, EOFError):
            raise self._damaged(name) from None
        if len(contents) > limit:
            raise RequestError(f"{name} of {self.folder} is larger than {limit:,} bytes: refused")
        if not decoder.eof or decoder.unused_data:
            raise self._damaged(name)
        return contents

    def _damaged(self, name: str) -> RequestError:
        return RequestError(
            f"{name} of {self.folder} is damaged; restore the folder, or remove it and pack the "
            "run again on the machine that has it"
        )


def find(archive: Path, cell: Cell) -> ArchivedCell | None:
    """A cell's entry, of which only the description is checked; None if there is none."""
    folder = archive / cell.name
    if not (folder / MANIFEST).is_file():
        return None
    try:
        manifest = parse_json(_read(folder / MANIFEST, LIMITS[MANIFEST]))
        if isinstance(manifest, dict) and type(manifest.get("format")) is int:
            _check_format(manifest["format"], folder)
        manifest = _Manifest.model_validate(manifest).model_dump()
        manifest["files"] = {name: manifest["files"][name] for name in FILES}
    except (ValueError, KeyError):
        raise RequestError(
            f"{folder / MANIFEST} is damaged; restore the folder, or remove it"
        ) from None
    return ArchivedCell(folder, manifest)


def _check_format(found: int, folder: Path) -> None:
    if found != FORMAT:
        raise RequestError(
            f"{folder} has format {str(found)[:20]}, and this version of slimfl reads {FORMAT}; "
            "update slimfl"
        )


def pack(cell: Cell, cache: Path, archive: Path) -> ArchivedCell | None:
    """Put a cell into the archive; None if the archive has as many rounds or more.

    A run in progress is packed up to its newest checkpoint.
    """
    source = cell.folder(cache)
    if not (source / EXPERIMENT).is_file():
        return None
    folder = RunFolder.open(source)
    _check_fits(cell, folder.experiment(), source)
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
    for name, contents in files.items():
        if name in COMPRESSED:
            _write(target / f"{name}.xz", lzma.compress(contents, filters=_FILTERS[name]))
        else:
            _write(target / name, contents)
    manifest = {
        "format": FORMAT,
        "rounds": rounds,
        "made": _made(before, folder.metrics()[:rounds], folder),
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }
    # last: until then the checksums are those of the old files, so an interruption is noticed
    _write(target / MANIFEST, json.dumps(manifest, indent=1).encode() + b"\n")
    return find(archive, cell)


def unpack(cell: Cell, archive: Path, cache: Path) -> bool:
    """Put a cell from the archive into the cache, unless the cache has as many rounds or more."""
    found = find(archive, cell)
    folder = cell.folder(cache)
    if found is None or cell.job(cache).rounds_done >= found.rounds:
        return False
    contents = {name: found.contents(name) for name in found.manifest["files"]}
    assert len(found.lines) == found.rounds
    _check_fits(cell, found.experiment, found.folder)
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=cache) as scratch:
        fresh = Path(scratch) / cell.name
        _checkpoint_path(fresh, found.rounds).parent.mkdir(parents=True)
        for name, raw in contents.items():
            newer = _checkpoint_path(fresh, found.rounds)
            write_atomically(newer if name == CHECKPOINT else fresh / name, raw)
        newest = RunFolder(fresh).checkpoint()
        if newest is None or newest.round != found.rounds:
            raise RequestError(f"the checkpoint of {found.folder} is damaged; restore the folder")
        if not folder.exists():
            fresh.rename(folder)
            sync_folder(cache)
            return True
        return _advance(RunFolder(folder), fresh, found.rounds)


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


def _check_fits(cell: Cell, experiment: config.Experiment, where: Path) -> None:
    if not same_rounds(experiment, cell.grown):
        raise RequestError(f"{where} has an experiment that does not match its name; move it away")


def _made(
    before: ArchivedCell | None, lines: Sequence[RoundRecord], folder: RunFolder
) -> list[dict[str, Any]]:
    """How the rounds were made: earlier ones as in the archive, new ones on this machine.

    A run folder does not record where its rounds were made. Rounds whose gains differ in the last
    bits from those drawn here were made elsewhere.
    """
    here = {
        "engine": made_with.engine(),
        "weights": made_with.drawn_weights(),
        "gains": made_with.drawn_gains(),
    }
    made = list(before.made) if before else []
    known = made[-1]["until"] if made else 0
    elsewhere = _last_made_elsewhere(folder.experiment(), lines)
    if elsewhere > known:
        versions = folder.provenance().get("versions", {})
        made.append({"until": elsewhere, **dict.fromkeys(here, UNKNOWN), "versions": versions})
    if elsewhere == len(lines):
        return made
    # the run folder records the versions that it began with
    versions = made_with.versions()
    if not made:
        versions = folder.provenance().get("versions", versions)
    if made and made[-1] == {"until": made[-1]["until"], **here, "versions": versions}:
        made.pop()
    return [*made, {"until": len(lines), **here, "versions": versions}]


def _last_made_elsewhere(experiment: config.Experiment, lines: Sequence[RoundRecord]) -> int:
    """The last round whose gains are not bit for bit those of this machine; 0 if none."""
    link = outage_link(experiment.radio)
    devices = experiment.federation.devices
    for line in reversed(lines):
        drawn = link.gains(experiment.seed, line.round, devices)[line.devices]
        if drawn.tolist() != line.gains:
            number: int = line.round
            return number
    return 0


def _checkpoint_path(folder: Path, rounds: int) -> Path:
    return folder / "checkpoints" / f"round-{rounds:08d}.safetensors"


def _read(path: Path, limit: int) -> bytes:
    """Read a plain file of bounded size; a link could lead anywhere, and a pipe never end."""
    if path.is_symlink() or not path.is_file():
        raise RequestError(f"{path} is not a plain file; restore it")
    try:
        with path.open("rb") as file:
            contents = file.read(limit + 1)
    except OSError as error:
        raise RequestError(f"{path} cannot be read ({error.strerror}); restore it") from None
    if len(contents) > limit:
        raise RequestError(f"{path} is larger than {limit:,} bytes: refused")
    return contents


def _write(path: Path, contents: bytes) -> None:
    with atomic_write(path) as temporary:
        temporary.write_bytes(contents)


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
