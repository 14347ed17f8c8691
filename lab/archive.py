"""Finished runs in the repository: what can be recomputed from, in one small file per plan.

A file holds each run's experiment, rounds, devices and data shares, and which version of the plan
asked for it. Models are left out: a run is repeated to the last bit from its experiment.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from lab.plan import NamedPlan, PlannedRun

ARCHIVE = Path(__file__).parent / "archive"
STAMPS = "stamps"
FILES = ("experiment.toml", "metrics.jsonl", "devices.csv", "partition.json")


def stamp_of(run: PlannedRun, cache: Path) -> Path:
    """Where it is written which plan asked for a run."""
    return cache / STAMPS / f"{run.cell.folder(cache).name}.json"


def finished(run: PlannedRun, cache: Path) -> bool:
    """Whether all rounds of a run are there, with its model or from the archive."""
    record = run.cell.record(cache)
    return record is not None and len(record.lines) >= run.cell.rounds


def pack(planned: NamedPlan, cache: Path, archive: Path = ARCHIVE) -> int:
    """Write the finished runs of a plan into its file; the same runs give the same bytes."""
    runs = [run for run in planned.runs if finished(run, cache)]
    archive.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive / f"{planned.name}.tar.xz", "w:xz", preset=9) as tar:
        for path in sorted(path for run in runs for path in _kept(run, cache)):
            contents = path.read_bytes()
            member = tarfile.TarInfo(path.relative_to(cache).as_posix())
            member.size = len(contents)
            tar.addfile(member, io.BytesIO(contents))
    return len(runs)


def unpack(planned: NamedPlan, cache: Path, archive: Path = ARCHIVE) -> None:
    """Restore the runs that the cache does not have."""
    path = archive / f"{planned.name}.tar.xz"
    if not path.is_file():
        return
    missing = {run.cell.folder(cache).name for run in planned.runs if not finished(run, cache)}
    with tarfile.open(path, "r:xz") as tar:
        for member in tar:
            folder, name = PurePosixPath(member.name).parts
            run = name.removesuffix(".json") if folder == STAMPS else folder
            if run in missing and not (cache / member.name).exists():
                tar.extract(member, cache, filter="data")


def _kept(run: PlannedRun, cache: Path) -> Iterator[Path]:
    folder = run.cell.folder(cache)
    yield from (folder / name for name in FILES if (folder / name).is_file())
    if stamp_of(run, cache).is_file():
        yield stamp_of(run, cache)
