"""From cells to their records: take what the archive has, run what is missing, read it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.reproduction.cells.archive import unpack
from lab.reproduction.cells.cell import Cell
from slimfl.results import RunRecord
from slimfl.runs.sweeps import Watcher, run_jobs


def gather(
    cells: Sequence[Cell],
    cache: Path,
    *,
    on: str = "local",
    workers: int | None = None,
    run: bool = True,
    watch: Watcher | None = None,
    archive: Path | None = None,
) -> dict[Cell, RunRecord]:
    """The records of the cells; without `run`, of those that are there, finished or not.

    Runs that have more rounds in the archive than in the cache are taken from there.
    """
    if archive is not None:
        for cell in cells:
            unpack(cell, archive, cache)
    if run:
        run_jobs((cell.job(cache) for cell in cells), on, workers=workers, watch=watch)
    return {cell: record for cell in cells if (record := cell.record(cache))}


def seed_by_seed(cells: Sequence[Cell]) -> list[Cell]:
    """Every cell once: seed 0 of all settings, then the others, so that an early look has all."""
    return sorted(dict.fromkeys(cells), key=lambda cell: cell.experiment.seed)
