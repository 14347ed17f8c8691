"""Server-sent events: what a page lacks, and the id that says what it has.

For every run, a page has a number of rounds with a fingerprint. They are the id of the last event
of every batch, which a browser sends as `Last-Event-ID` when it reconnects. So nothing is sent
twice and nothing is lost, even if this server was restarted in between. If the fingerprint differs,
because a resumed run has cut its metrics, the page gets the run from its first round.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from slimfl.report.live.board import Board
from slimfl.report.live.followed import Followed

#: Maximum number of rounds per event, so that no event takes long to read.
ROUNDS = 2000
#: Maximum length of an id.
MOST_ID_CHARACTERS = 1 << 15

_PART = re.compile(r"([0-9a-f]{12}):([0-9]{1,9}):([0-9a-f]{16})")


class Reader:
    """One connected page."""

    def __init__(self, last_event_id: str = "") -> None:
        self._has = parse_id(last_event_id)
        self._revisions: dict[str, tuple[Followed, int]] = {}
        self._listing: object = None

    def news(self, board: Board) -> Iterator[str]:
        """The events that bring the page up to date, as text."""
        listing, runs = board.listing, board.runs
        changed = listing is not self._listing
        if changed:
            self._listing = listing
            self._has = {key: has for key, has in self._has.items() if key in runs}
            yield event("runs", listing)
        for key, run in runs.items():
            revision = run.revision
            if self._revisions.get(key) != (run, revision):
                self._revisions[key] = (run, revision)
                changed = True
                yield from self._rounds(key, run)
        if changed:
            yield event("batch", {"caught_up": board.caught_up}, id=self._id())

    def _rounds(self, key: str, run: Followed) -> Iterator[str]:
        log, now = run.published
        first, digest = self._has.get(key, (0, ""))
        last = now["rounds"]  # there may be more rows, but their description is not published yet
        if first > last or (first and log.digest(first) != digest):
            first = 0
        while True:
            until = min(first + ROUNDS, last)
            rows = ",".join(log.rows[first:until])
            words = json.dumps({"run": key, "from": first, "now": now}, allow_nan=False)
            yield f'event: rounds\ndata: {words[:-1]}, "rows": [{rows}]}}\n\n'
            first = until
            if first == last:
                break
        self._has[key] = (last, log.digest(last))

    def _id(self) -> str:
        return ",".join(f"{key}:{lines}:{digest}" for key, (lines, digest) in self._has.items())


def parse_id(text: str) -> dict[str, tuple[int, str]]:
    """Rounds and fingerprint by run; empty for anything that this module did not write.

    >>> parse_id("0123456789ab:7:00000000000000ff")
    {'0123456789ab': (7, '00000000000000ff')}
    >>> parse_id("7"), parse_id("")
    ({}, {})
    """
    parts = text.split(",") if 0 < len(text) <= MOST_ID_CHARACTERS else []
    matches = [_PART.fullmatch(part) for part in parts]
    if not all(matches):
        return {}
    return {each[1]: (int(each[2]), each[3]) for each in matches if each}


def event(kind: str, data: dict[str, Any], id: str | None = None) -> str:
    """One event in its wire format."""
    # JSON in ASCII has no line breaks, so one data line suffices
    head = f"event: {kind}\n" + ("" if id is None else f"id: {id}\n")
    return f"{head}data: {json.dumps(data, allow_nan=False)}\n\n"
