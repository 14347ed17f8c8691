"""All followed runs: one thread finds, reads and describes them, others only look."""

import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slimfl.report.figures.colours import by_name, on_screen
from slimfl.report.live.followed import Followed, shown
from slimfl.report.live.scan import run_folders
from slimfl.results import Group, group

log = logging.getLogger(__name__)

#: Intervals for finding folders, reading files and trying locks.
SCAN_S, READ_S, LOCK_S = 1.0, 0.3, 2.0


class Board:
    """The runs below some paths.

    One thread runs `follow`. What others see is replaced, never modified.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = list(paths)
        self.runs: dict[str, Followed] = {}
        """By key, in the order of their paths."""
        self.listing: dict[str, Any] = {"runs": [], "left_out": 0}
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
        found = run_folders(self.paths)
        known = {run.path: run for run in self.runs.values()}
        # a new experiment.toml means another run in the same place
        runs = [
            known[path] if path in known and known[path].stamp == stamp else Followed(path, stamp)
            for path, stamp in found.runs.items()
        ]
        if runs == list(self.runs.values()) and found.left_out == self.listing["left_out"]:
            return
        self.runs = {run.key: run for run in runs}
        self.listing = {"runs": self._described(runs), "left_out": found.left_out}

    def _described(self, runs: list[Followed]) -> list[dict[str, Any]]:
        groups = group(run.record for run in runs if run.record)
        names = _names(groups)
        colours = by_name(names.values())
        member = {record.path: each for each in groups for record in each.runs}
        described = []
        for run in runs:
            words: dict[str, Any] = {"key": run.key, "path": shown(self._relative(run.path))}
            if run.record is not None:
                experiment, each = run.record.experiment, member[run.path]
                words |= {
                    "name": shown(names[each.setting, each.method]),
                    "scene": shown(each.scene),
                    "colour": on_screen(colours[names[each.setting, each.method]]),
                    "seed": experiment.seed,
                    "rounds": experiment.rounds,
                    "devices": experiment.federation.devices,
                    "dataset": shown(run.record.dataset_name),
                    "segments": len(experiment.model.widths),
                }
            described.append(words)
        return described

    def _relative(self, path: Path) -> str:
        for base in self.paths:
            if path.is_relative_to(base):
                return str(path.relative_to(base.parent))
        return str(path)


def _names(groups: list[Group]) -> dict[tuple[str, str], str]:
    """A label for each group: its name, and the parts of its scene that differ from others."""
    scenes = [each.scene.split(", ") for each in groups]
    common = set.intersection(*map(set, scenes)) if scenes else set()
    return {
        (each.setting, each.method): ", ".join([each.name, *(w for w in scene if w not in common)])
        for each, scene in zip(groups, scenes, strict=True)
    }
