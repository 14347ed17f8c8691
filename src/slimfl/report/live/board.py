"""All followed runs: one thread finds, reads and describes them, others only look."""

import json
import logging
import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from slimfl.errors import RequestError
from slimfl.report.figures.colours import by_name, on_screen
from slimfl.report.live.followed import AXES, Followed, Stamp, columns, shown, stamp_of
from slimfl.results.groups import Group, group
from slimfl.runs.storage.run_folder import EXPERIMENT

log = logging.getLogger(__name__)

#: Intervals for finding folders, reading files and trying locks.
SCAN_S, READ_S, LOCK_S = 1.0, 0.3, 2.0
#: `slimfl run` writes to runs/GROUP/RUN; one more level allows for sorted groups.
DEPTH = 3
#: Maximum number of folder entries per scan, so that a watched home folder does not stall it.
MOST_ENTRIES = 20_000
#: Maximum number of runs on a readable page.
MOST_RUNS = 200
#: Target number of points of all curves together; more would only make the page slow.
POINTS, FEWEST = 60_000, 100


class Board:
    """The runs below some paths.

    One thread runs `follow`. What others see is replaced, never modified.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = list(paths)
        self.runs: dict[str, Followed] = {}
        """By key, in the order of their paths."""
        self.columns = columns([])
        """Of the table of these runs."""
        self.listing: dict[str, Any] = self._described([], 0)
        """The description of the runs for the page; changes when runs come and go."""
        self.caught_up = False
        """True once everything that existed has been read."""
        self._stop = threading.Event()
        self._scanned_s = self._tried_s = float("-inf")

    def follow(self) -> None:
        """Follow the disk until `close`."""
        while not self._stop.is_set():
            more = False
            try:
                more = self.refresh()
            except Exception:  # an unexpected folder must not end the page for the others
                log.exception("the runs could not be read; trying again")
            if not more:
                self._stop.wait(READ_S)

    def close(self) -> None:
        """End `follow`, and release those who wait for news."""
        self._stop.set()

    @property
    def closed(self) -> bool:
        """True if there will be no more news."""
        return self._stop.is_set()

    def refresh(self) -> bool:
        """Look at the disk once; True if there is more to read right away."""
        now_s = time.monotonic()
        if now_s - self._scanned_s >= SCAN_S:
            self._scan()
            self._scanned_s = time.monotonic()
        more = [run.refresh() for run in self.runs.values()]
        if now_s - self._tried_s >= LOCK_S:
            for run in self.runs.values():
                run.look_for_writer()
            self._tried_s = time.monotonic()
        self.caught_up = self.caught_up or not any(more)
        return any(more)

    def _scan(self) -> None:
        found, left_out = run_folders(self.paths)
        known = {run.path: run for run in self.runs.values()}
        # a new experiment.toml means another run in the same place
        runs = [
            known[path] if path in known and known[path].stamp == stamp else Followed(path, stamp)
            for path, stamp in found.items()
        ]
        if runs == list(self.runs.values()) and left_out == self.listing["left_out"]:
            return
        self.columns = columns([run.record for run in runs if run.record])
        self.runs = {run.key: run for run in runs}
        self.listing = self._described(runs, left_out)

    def _described(self, runs: list[Followed], left_out: int) -> dict[str, Any]:
        groups = group(run.record for run in runs if run.record)
        names = _names(groups)
        colours = by_name(names.values())
        member = {record.path: each for each in groups for record in each.runs}
        described = []
        for run in runs:
            words: dict[str, Any] = {"key": run.key, "path": shown(self._relative(run.path))}
            if run.record is not None:
                each = member[run.path]
                words |= {
                    "name": shown(names[each.setting, each.method]),
                    "scene": shown(each.scene),
                    "colour": on_screen(colours[names[each.setting, each.method]]),
                    "seed": run.record.experiment.seed,
                    "devices": run.record.experiment.federation.devices,
                }
            described.append(words)
        return {
            "runs": described,
            "left_out": left_out,
            "axes": {name: axis.as_json() for name, axis in AXES.items()},
            "columns": [[column.key, column.heading] for column in self.columns],
        }

    def _relative(self, path: Path) -> str:
        for base in self.paths:
            if path.is_relative_to(base):
                return str(path.relative_to(base.parent))
        return str(path)


class Reader:
    """One connected page, and what it has been told."""

    def __init__(self) -> None:
        self._revisions: dict[str, tuple[Followed, int]] = {}
        self._listing: object = None

    def news(self, board: Board) -> Iterator[str]:
        """The events that bring the page up to date: the list of runs, and each run that changed.

        Every event replaces what the page knew, so a page that reconnects needs no memory.
        """
        listing, runs, table = board.listing, board.runs, board.columns
        changed = listing is not self._listing
        if changed:
            self._listing = listing
            self._revisions.clear()
            yield event("runs", listing)
        for key, run in runs.items():
            revision = run.revision
            if self._revisions.get(key) != (run, revision):
                self._revisions[key] = run, revision
                changed = True
                rounds, now = run.published
                now = now | {"asked": run.record.experiment.rounds if run.record else "?"}
                cells = [[column.value(now), column.shown(now)] for column in table]
                points = max(FEWEST, POINTS // (len(runs) * max(1, len(rounds.accuracy))))
                yield event("run", now | {"cells": cells} | rounds.curves(now["tested"], points))
        if changed:
            yield event("batch", {"caught_up": board.caught_up})


def event(kind: str, data: dict[str, Any]) -> str:
    """One event in its wire format."""
    # JSON in ASCII has no line breaks, so one data line suffices
    return f"event: {kind}\ndata: {json.dumps(data, allow_nan=False)}\n\n"


def check_paths(paths: Sequence[Path]) -> list[Path]:
    """The paths as absolute paths; `RequestError` if one is not a folder."""
    for path in paths:
        if not path.exists():
            raise RequestError(
                f"there is no folder {path}; give a run folder, or a folder that contains runs"
            )
        if not path.is_dir():
            raise RequestError(f"{path} is a file; give the folder of the run")
    return [path.absolute() for path in paths]


def run_folders(paths: Iterable[Path]) -> tuple[dict[Path, Stamp], int]:
    """The run folders at and below these paths with the stamps of their experiments.

    Also the number of runs beyond `MOST_RUNS`; the newest are kept.
    """
    found: dict[Path, Stamp] = {}
    left = [MOST_ENTRIES]
    for path in paths:
        for folder in _below(path, DEPTH, left):
            stamp = stamp_of(folder / EXPERIMENT)
            if stamp is not None:
                found.setdefault(folder, stamp)
    newest = sorted(found, key=lambda folder: found[folder][3], reverse=True)[:MOST_RUNS]
    return {path: found[path] for path in sorted(newest)}, len(found) - len(newest)


def _below(folder: Path, depth: int, left: list[int]) -> Iterator[Path]:
    if (folder / EXPERIMENT).is_file():
        yield folder
        return
    if depth == 0:
        return
    inside = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                left[0] -= 1
                if left[0] < 0:
                    break
                # a link could lead anywhere, or back here
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                    inside.append(Path(entry.path))
    except OSError:  # it has vanished or cannot be read
        return
    for path in sorted(inside, reverse=True):  # by default names start with the time: newest first
        yield from _below(path, depth - 1, left)


def _names(groups: list[Group]) -> dict[tuple[str, str], str]:
    """A label for each group: its name, and the parts of its scene that differ from others."""
    scenes = [each.scene.split(", ") for each in groups]
    common = set.intersection(*map(set, scenes)) if scenes else set()
    return {
        (each.setting, each.method): ", ".join([each.name, *(w for w in scene if w not in common)])
        for each, scene in zip(groups, scenes, strict=True)
    }
