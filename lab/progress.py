"""The progress of a scale's runs, and how long the rest will take on this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from lab import archive as archives
from lab.cell import Cell
from slimfl.round import RoundRecord, RunFolder
from slimfl.runs.storage.run_folder import EXPERIMENT

#: Number of last rounds that are used to estimate the time of a round.
TIMED_ROUNDS = 20


@dataclass(frozen=True)
class CellStatus:
    """One run: rounds done, rounds that are read, and seconds per round."""

    name: str
    rounds_done: int
    rounds: int
    seconds_per_round: float | None
    """None if no run has been timed."""
    measured: bool
    """True if measured in this run; otherwise estimated from others."""
    seconds_left: float | None


@dataclass(frozen=True)
class Status:
    """All runs of a scale."""

    scale: str
    cells: list[CellStatus]
    workers: int

    @property
    def finished(self) -> int:
        """Number of runs with all rounds that are read."""
        return sum(each.rounds_done >= each.rounds for each in self.cells)

    @property
    def seconds_left(self) -> float | None:
        """With one run per core, so at least the time of the longest run."""
        left = [each.seconds_left for each in self.cells]
        known = [seconds for seconds in left if seconds is not None]
        if len(known) < len(left):
            return None
        return max(sum(known) / self.workers, max(known, default=0.0))

    def words(self, duration: Callable[[float], str]) -> str:
        """How many are finished, and the time left as `duration` writes it."""
        left = self.seconds_left
        said = "unknown until a run has been timed" if left is None else f"about {duration(left)}"
        runs = "run" if self.workers == 1 else "runs"
        return (
            f"{self.finished} of {len(self.cells)} runs of {self.scale} are finished. Time left "
            f"with {self.workers} parallel {runs}: {said}."
        )

    def as_json(self) -> dict[str, Any]:
        """Plain dictionaries, lists and numbers."""
        return {
            "scale": self.scale,
            "runs": len(self.cells),
            "finished": self.finished,
            "rounds_done": sum(each.rounds_done for each in self.cells),
            "rounds": sum(each.rounds for each in self.cells),
            "workers": self.workers,
            "seconds_left": self.seconds_left,
            "cells": [asdict(each) for each in self.cells],
        }


def status(
    scale: str, cells: Sequence[Cell], cache: Path, archive: Path | None, workers: int
) -> Status:
    """Progress in the cache or the archive, whichever is further."""
    lines = {cell: _lines(cell, cache, archive) for cell in cells}
    timed = {cell: _seconds_per_round(some) for cell, some in lines.items() if some}
    found = []
    for cell in cells:
        seconds = timed.get(cell) or _estimate(cell, timed, cache)
        done = min(len(lines[cell]), cell.rounds)
        left = 0.0 if done == cell.rounds else None
        if left is None and seconds is not None:
            left = (cell.rounds - done) * seconds
        found.append(CellStatus(cell.name, done, cell.rounds, seconds, cell in timed, left))
    return Status(scale, found, workers)


def _lines(cell: Cell, cache: Path, archive: Path | None) -> list[RoundRecord]:
    folder = cell.folder(cache)
    here = RunFolder.open(folder).metrics() if (folder / EXPERIMENT).exists() else []
    stored = archives.find(archive, cell) if archive else None
    return stored.lines if stored and stored.rounds > len(here) else here


def _seconds_per_round(lines: Sequence[RoundRecord]) -> float:
    return float(
        median(line.seconds.training + line.seconds.evaluation for line in lines[-TIMED_ROUNDS:])
    )


def _estimate(cell: Cell, timed: dict[Cell, float], cache: Path) -> float | None:
    """From timed runs of the same method; otherwise from all, weighted by their work."""
    work = cell.job(cache).effort
    alike = {c: s for c, s in timed.items() if c.experiment.method == cell.experiment.method}
    ratios = [seconds / c.job(cache).effort for c, seconds in (alike or timed).items()]
    return median(ratios) * work if ratios else None
