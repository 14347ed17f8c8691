"""One followed run: its rounds as columns of numbers, and the newest description of them."""

from __future__ import annotations

import hashlib
import os
from array import array
from collections.abc import Sequence
from functools import partial
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from slimfl.errors import RequestError
from slimfl.report.pages.plots import COSTS, ROUND, Axis, short
from slimfl.report.tables import Column, number, percent
from slimfl.results.curves import thin
from slimfl.results.records import RunRecord
from slimfl.results.rules import final_accuracy, round_energy_j
from slimfl.round import RoundRecord, RunFolder, finished
from slimfl.runs.storage.record import DamageError, Position, read_on
from slimfl.runs.storage.run_folder import METRICS

#: Number of lines that are read before it is another run's turn.
CHUNK = 1000
#: Maximum length of text from a folder, such as names and problems.
MOST_CHARACTERS = 300

#: Device, inode, size and time of a file: if they are the same, the file is unchanged.
Stamp = tuple[int, int, int, int]

#: What accuracy is drawn against: sums up to a round.
AXES = {
    "round": ROUND,
    "compute_s": Axis("computing time so far, s", "s"),
    "airtime_s": COSTS["airtime_s"],
    "energy_j": COSTS["sending_j"],
    "sent_mb": COSTS["sent_mb"],
}


class Rounds:
    """The rounds of a metrics file that have been read so far."""

    def __init__(self, segments: int) -> None:
        self.ends = array("Q", [0])
        """Where each line ends in the file."""
        self.last: tuple[RoundRecord, Position] | None = None
        self.sums = dict.fromkeys(AXES, 0.0)
        self.places = {axis: array("d") for axis in AXES}
        """The sums at every tested round."""
        self.accuracy: dict[str, array[float]] = {}
        """By width, at every tested round."""
        self.delivered, self.bits = [0] * segments, [0.0] * segments
        self.asked = 0

    def __len__(self) -> int:
        return len(self.ends) - 1

    def position(self, lines: int) -> Position:
        """The position after the first lines."""
        return Position(lines, self.ends[lines], frozenset(self.accuracy))

    def add(self, line: RoundRecord, behind: Position) -> None:
        """Add a round."""
        costs = (
            1,
            line.seconds.training + line.seconds.evaluation,
            line.airtime_s,
            round_energy_j(line, computing=False),
            sum(line.bits_sent) / 8e6,
        )
        for axis, cost in zip(AXES, costs, strict=True):
            self.sums[axis] += cost
        for width in sorted(line.accuracy, key=lambda name: float(name[:-1])):
            self.accuracy.setdefault(width, array("d")).append(line.accuracy[width])
        if line.accuracy:
            for axis, place in self.places.items():
                place.append(self.sums[axis])
        self.delivered = [a + b for a, b in zip(self.delivered, line.delivered, strict=True)]
        self.bits = [a + b for a, b in zip(self.bits, line.bits_sent, strict=True)]
        self.asked += line.asked
        self.last = line, behind
        self.ends.append(behind.size_bytes)

    def numbers(self) -> dict[str, Any]:
        """The numbers of the table: those of `slimfl compare`, up to the last round."""
        return {
            **self.sums,
            "rounds": len(self),
            "tested": len(self.places["round"]),
            "accuracy": {w: final_accuracy(tested)["final"] for w, tested in self.accuracy.items()},
            "delivered": [
                count / self.asked if bits and self.asked else None
                for count, bits in zip(self.delivered, self.bits, strict=True)
            ],
        }

    def curves(self, tested: int, points: int) -> dict[str, dict[str, list[float]]]:
        """The first tested rounds on every axis, and the accuracy of every width in percent."""
        kept, _ = thin(range(tested), points)
        return {
            "x": {axis: short(place[i] for i in kept) for axis, place in self.places.items()},
            # a copy, as the following thread may add a width meanwhile
            "y": {width: short(100 * a[i] for i in kept) for width, a in [*self.accuracy.items()]},
        }


class Followed:
    """A run folder and the rounds that were read from it so far.

    Only the following thread calls the methods. Others read `revision` and `published`: the rounds,
    and a description of the first `rounds` of them.
    """

    def __init__(self, path: Path, stamp: Stamp) -> None:
        self.path, self.stamp = path, stamp
        self.key = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
        self.record: RunRecord | None = None
        self.revision = 0
        """Increases with every change."""
        self._problem: str | None = None
        self._writing = False
        self._metrics: Stamp | None = None
        try:
            folder = RunFolder.open(path)
            self.record = RunRecord(path, folder.experiment(), folder.provenance(), [], [])
        except (RequestError, OSError) as error:
            self._problem = str(error)
        self._start_over()
        self._publish()

    def refresh(self) -> bool:
        """Read what is new, at most a chunk; True if there may be more."""
        stamp = stamp_of(self.path / METRICS)
        if self.record is None or stamp == self._metrics:
            return False
        self._metrics = stamp
        try:
            more = self._read(self.record)
            self._problem = None
        except (DamageError, RequestError, OSError) as error:
            more, self._problem = False, str(error)
        if more:
            self._metrics = None  # forget the stamp, so that the rest is read next time
        else:
            self._publish()
        return more

    def look_for_writer(self) -> None:
        """Check whether a process is writing to the folder."""
        writing = self.record is not None and RunFolder(self.path).in_use()
        if writing != self._writing:
            self._writing = writing
            self._publish()

    def _publish(self) -> None:
        problem = shown(self._problem) if self._problem else None
        now = {"key": self.key, "state": self._state(), "problem": problem}
        self.published: tuple[Rounds, dict[str, Any]] = self._rounds, now | self._rounds.numbers()
        self.revision += 1

    def _state(self) -> str:
        if self._problem is not None or self.record is None:
            return "damaged"
        if self._is_complete(self.record):
            return "finished"
        if self._writing:
            return "running"
        return "stopped" if len(self._rounds) else "waiting"

    def _start_over(self) -> None:
        self._rounds = Rounds(len(self.record.experiment.model.widths) if self.record else 0)
        self._evaluated: list[RoundRecord] = []

    def _read(self, record: RunRecord) -> bool:
        """Append new lines; a file that was cut or replaced is read again."""
        if self._rounds.last is not None and not self._last_line_stays(record):
            self._start_over()
        start, count = self._rounds.position(len(self._rounds)), 0
        for line, behind in islice(read_on(self.path / METRICS, record.experiment, start), CHUNK):
            self._rounds.add(line, behind)
            if record.experiment.federation.stop_on_convergence and line.accuracy:
                # without the lists of devices, which may be long
                slim: dict[str, object] = {"devices": [], "gains": None, "decoded": []}
                self._evaluated.append(line.model_copy(update=slim))
            count += 1
        return count == CHUNK

    def _last_line_stays(self, record: RunRecord) -> bool:
        """True if the file still has the line that was read last.

        A resumed run cuts its metrics and appends the rounds again. Such lines differ from the old
        ones in the seconds that the round took.
        """
        start = self._rounds.position(len(self._rounds) - 1)
        try:
            found = next(read_on(self.path / METRICS, record.experiment, start), None)
        except DamageError:
            return False
        return found == self._rounds.last

    def _is_complete(self, record: RunRecord) -> bool:
        """By the rule of the loop, which needs only the tested rounds and the last one."""
        if self._rounds.last is None:
            return False
        line = self._rounds.last[0]
        lines = self._evaluated if line.accuracy and self._evaluated else [*self._evaluated, line]
        return len(self._rounds) >= record.experiment.rounds or finished(record.experiment, lines)


def columns(records: Sequence[RunRecord]) -> list[Column]:
    """The table of the page; each row is what `Followed` publishes, with the rounds asked for."""
    widths = sorted({w for each in records for w in each.experiment.model.widths})

    segments = range(max((len(each.experiment.model.widths) for each in records), default=0))

    def accuracy(now: dict[str, Any], width: float) -> float | None:
        found: float | None = now["accuracy"].get(f"{width}x")
        return found

    def delivered(now: dict[str, Any], segment: int) -> float | None:
        found: list[float | None] = now["delivered"]
        return found[segment] if segment < len(found) else None

    return [
        Column("rounds", "rounds", itemgetter("rounds"),
               text=lambda now: f"{now['rounds']} / {now['asked']}"),
        *(Column(f"accuracy % {width}x", f"accuracy.{width}x", partial(accuracy, width=width),
                 percent) for width in widths),
        *(Column(f"delivered % segment\u00a0{i + 1}", f"delivered.{i + 1}",
                 partial(delivered, segment=i), percent) for i in segments),
        *(Column(heading, key, itemgetter(key), number)
          for heading, key in (("computing s", "compute_s"), ("airtime s", "airtime_s"),
                               ("energy J", "energy_j"), ("sent MB", "sent_mb"))),
    ]  # fmt: skip


def shown(text: str) -> str:
    r"""Text from a folder on one line of limited length.

    >>> shown("a\nb"), len(shown("x" * 1000))
    ('a b', 300)
    """
    plain = "".join(c if c.isprintable() else " " for c in text[:MOST_CHARACTERS])
    return plain if len(text) <= MOST_CHARACTERS else plain[:-1] + "…"


def stamp_of(path: Path) -> Stamp | None:
    """The stamp of a file; None if it does not exist."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
