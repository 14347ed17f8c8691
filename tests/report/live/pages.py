"""What a page knows from its events: a plain second implementation of the protocol."""

import json
from typing import Any

from slimfl.report.live.board import Board, Reader


class Page:
    """Collects events as a browser and the page's script do."""

    def __init__(self) -> None:
        self.runs: dict[str, dict[str, Any]] = {}
        self.listed: dict[str, dict[str, Any]] = {}
        self.received = 0
        """Events with the rounds of a run."""

    def take(self, text: str) -> None:
        fields = dict(part.split(": ", 1) for part in text.strip().split("\n"))
        assert text.endswith("\n\n")
        data = json.loads(fields["data"])
        if fields["event"] == "runs":
            self.listed = {run["key"]: run for run in data["runs"]}
            self.columns = [key for key, _ in data["columns"]]
            self.runs = {key: run for key, run in self.runs.items() if key in self.listed}
        elif fields["event"] == "run":
            assert data["key"] in self.listed
            self.received += 1
            self.runs[data["key"]] = data

    def connect(self, board: Board) -> "Page":
        """A connection of its own: everything that is news, then it breaks."""
        for text in Reader().news(board):
            self.take(text)
        return self

    @property
    def run(self) -> dict[str, Any]:
        """The only run."""
        [run] = self.runs.values()
        return run


def read_all(board: Board) -> Board:
    """Let a board see everything that is on the disk now."""
    board._scanned_s = board._tried_s = float("-inf")
    while board.refresh():
        pass
    return board
