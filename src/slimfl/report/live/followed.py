"""One followed run: what has been read of it, and its changes."""

import hashlib
import os
from itertools import islice
from pathlib import Path
from typing import Any

from slimfl.errors import RequestError
from slimfl.report.live.log import RoundLog
from slimfl.report.live.scan import Stamp, stamp_of
from slimfl.report.live.totals import Totals
from slimfl.results import RunRecord
from slimfl.round import RoundRecord, RunFolder, convergence
from slimfl.runs.storage.record import DamageError, read_on
from slimfl.runs.storage.run_folder import METRICS

#: Number of lines that are read before it is another run's turn.
CHUNK = 250
#: Maximum length of text from a folder, such as names and problems.
MOST_CHARACTERS = 300


class Followed:
    """A run folder and the rounds that were read from it so far.

    Only the following thread calls the methods. Others read `revision` and `published`: a log, and
    a description of its first `now["rounds"]` rows.
    """

    def __init__(self, path: Path, stamp: Stamp) -> None:
        self.path, self.stamp = path, stamp
        self.key = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
        self.record: RunRecord | None = None
        self.revision = 0
        """Increases with every change."""
        self._problem: str | None = None
        self._writing = self._complete = False
        self._metrics: Stamp | None = None
        self._start_over()
        try:
            folder = RunFolder.open(path)
            self.record = RunRecord(path, folder.experiment(), folder.provenance(), [], [])
            self._start_over()
        except (RequestError, OSError) as error:
            self._problem = str(error)
        self._publish()

    def refresh(self) -> bool:
        """Read what is new, at most a chunk; True if there may be more."""
        if self.record is None:
            return False
        stamp = stamp_of(self.path / METRICS)
        if stamp == self._metrics:
            return False
        self._metrics = stamp
        more = False
        try:
            more = self._read(self.record)
            self._problem = None
        except (DamageError, RequestError, OSError) as error:
            self._problem = str(error)
        if more:
            self._metrics = None  # forget the stamp, so that the rest is read next time
        self._complete = self._is_complete(self.record)
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
        now = {
            "state": self._state(),
            "problem": problem,
            "widths": list(self._totals.widths),
            **self._totals.summary(),
        }
        self.published: tuple[RoundLog, dict[str, Any]] = self._log, now
        self.revision += 1

    def _state(self) -> str:
        if self._problem is not None:
            return "damaged"
        if self._complete:
            return "finished"
        if self._writing:
            return "running"
        return "stopped" if self._totals.rounds else "waiting"

    def _start_over(self) -> None:
        self._log = RoundLog()
        self._totals = Totals(len(self.record.experiment.model.widths) if self.record else 0)
        self._evaluated: list[RoundRecord] = []
        self._stopped = False

    def _read(self, record: RunRecord) -> bool:
        """Append new lines; a file that was cut or replaced is read again."""
        if self._log.rows and not self._last_line_stays(record):
            self._start_over()
        start = self._log.position(len(self._log.rows))
        count = 0
        for line, behind in islice(read_on(self.path / METRICS, record.experiment, start), CHUNK):
            self._log.append(line, behind, self._totals.add(line))
            self._stopped = line.stopped_by is not None
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
        start = self._log.position(len(self._log.rows) - 1)
        try:
            found = next(read_on(self.path / METRICS, record.experiment, start), None)
        except DamageError:
            return False
        return found is not None and self._log.ends_with(*found)

    def _is_complete(self, record: RunRecord) -> bool:
        """Equivalent to `federation.finished`, without keeping all lines."""
        section = record.experiment.federation
        return (
            self._stopped
            or self._totals.rounds >= record.experiment.rounds
            or (section.stop_on_convergence and convergence(self._evaluated, section) is not None)
        )


def shown(text: str) -> str:
    r"""Text from a folder on one line of limited length.

    >>> shown("a\nb"), len(shown("x" * 1000))
    ('a b', 300)
    """
    plain = "".join(c if c.isprintable() else " " for c in text[:MOST_CHARACTERS])
    return plain if len(text) <= MOST_CHARACTERS else plain[:-1] + "…"
