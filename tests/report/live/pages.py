"""What a page knows from its events: a plain second implementation of the protocol."""

import json
from typing import Any

from slimfl.report.live import Board
from slimfl.report.live.stream import Reader


class Page:
    """Collects events as a browser and the page's script do."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Any]] = {}
        self.now: dict[str, dict[str, Any]] = {}
        self.listed: dict[str, dict[str, Any]] = {}
        self.last_event_id = ""
        self.received = 0
        """Rows that came over the wire."""

    def take(self, text: str) -> None:
        fields = dict(part.split(": ", 1) for part in text.strip().split("\n"))
        assert text.endswith("\n\n")
        data = json.loads(fields["data"])
        if fields["event"] == "runs":
            self.listed = {run["key"]: run for run in data["runs"]}
        elif fields["event"] == "rounds":
            rows = self.rows.setdefault(data["run"], [])
            assert data["from"] <= len(rows), "a gap"
            self.received += len(data["rows"])
            rows[data["from"] :] = data["rows"]
            self.now[data["run"]] = data["now"]
        self.last_event_id = fields.get("id", self.last_event_id)

    def connect(self, board: Board) -> "Page":
        """A connection of its own: everything that is news, then it breaks."""
        for text in Reader(self.last_event_id).news(board):
            self.take(text)
        return self


def read_all(board: Board) -> Board:
    """Let a board see everything that is on the disk now."""
    board._scanned_s = board._tried_s = float("-inf")
    while board.refresh():
        pass
    return board
