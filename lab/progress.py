"""The progress of a scale's runs, and how long the rest will take on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from lab import archive as archives
from lab.cell import Cell
from slimfl.cli.output import duration
from slimfl.round import RoundRecord, RunFolder
from slimfl.runs.storage.run_folder import EXPERIMENT

#: Number of last rounds that are used to estimate the time of a round.
TIMED_ROUNDS = 20


def status(
    scale: str, cells: Sequence[Cell], cache: Path, archive: Path | None, workers: int
) -> dict[str, Any]:
    """Progress in the cache or the archive, whichever is further, as plain values.

    Args:
        scale: Its name.
        cells: The runs, with the rounds that the scale reads.
        cache: The folder of run folders.
        archive: The folder of packed runs.
        workers: Number of parallel runs, for the time left: at least that of the longest run.
    """
    lines = {cell: _lines(cell, cache, archive) for cell in cells}
    timed = {cell: _seconds_per_round(some) for cell, some in lines.items() if some}
    runs: list[dict[str, Any]] = []
    for cell in cells:
        seconds = timed.get(cell) or _estimate(cell, timed, cache)
        done = min(len(lines[cell]), cell.rounds)
        left = 0.0 if done == cell.rounds else None
        if left is None and seconds is not None:
            left = (cell.rounds - done) * seconds
        runs.append({"name": cell.name, "rounds_done": done, "rounds": cell.rounds,
                     "seconds_per_round": seconds, "measured": cell in timed,
                     "seconds_left": left})  # fmt: skip
    known = [run["seconds_left"] for run in runs if run["seconds_left"] is not None]
    known_of_all = len(known) == len(runs)
    return {
        "scale": scale,
        "runs": len(runs),
        "finished": sum(run["rounds_done"] >= run["rounds"] for run in runs),
        "rounds_done": sum(run["rounds_done"] for run in runs),
        "rounds": sum(run["rounds"] for run in runs),
        "workers": workers,
        "seconds_left": max([sum(known) / workers, *known]) if known_of_all else None,
        "cells": runs,
    }


def words(found: dict[str, Any]) -> str:
    """How many are finished, and the time left."""
    left = found["seconds_left"]
    said = "unknown until a run has been timed" if left is None else f"about {duration(left)}"
    runs = "run" if found["workers"] == 1 else "runs"
    return (
        f"{found['finished']} of {found['runs']} runs of {found['scale']} are finished. Time left "
        f"with {found['workers']} parallel {runs}: {said}."
    )


def rows(found: dict[str, Any]) -> list[dict[str, str]]:
    """A row per run, for a table."""
    shown = []
    for run in found["cells"]:
        pace, left = run["seconds_per_round"], run["seconds_left"]
        about = "" if run["measured"] else "about "
        is_left = run["rounds_done"] < run["rounds"]
        shown.append(
            {
                "run": run["name"],
                "rounds": f"{run['rounds_done']} of {run['rounds']}",
                "seconds per round": "" if pace is None else f"{about}{pace:.1f}",
                "time left": ("unknown" if left is None else duration(left)) if is_left else "",
            }
        )
    return shown


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
