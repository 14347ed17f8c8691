"""The rounds of one metrics file, in a form that other threads can read.

One thread appends, others read. They see a row only after everything that belongs to it is there,
and a file that is read again gets a new log.
"""

import hashlib
from array import array

from slimfl.round import RoundRecord
from slimfl.runs.storage.record import Position


class RoundLog:
    """Rows, each with where its line ends and a fingerprint of all lines up to it."""

    def __init__(self) -> None:
        self.rows: list[str] = []
        self._ends = array("Q", [0])
        self._chain = array("Q", [0])
        self._widths: frozenset[str] = frozenset()

    def append(self, line: RoundRecord, behind: Position, row: str) -> None:
        """Add a round."""
        self._chain.append(self._chained(self._chain[-1], line))
        self._ends.append(behind.size_bytes)
        self._widths = behind.widths
        self.rows.append(row)  # last: readers that see the row find the rest

    def ends_with(self, line: RoundRecord, behind: Position) -> bool:
        """True if this is the last line, at the same place in the file."""
        last = len(self.rows)
        return (last, self._ends[last]) == (behind.lines, behind.size_bytes) and self._chain[
            last
        ] == self._chained(self._chain[last - 1], line)

    def digest(self, lines: int) -> str:
        """The fingerprint of the first lines; equal fingerprints mean equal rounds."""
        return f"{self._chain[lines]:016x}"

    def position(self, lines: int) -> Position:
        """The position after the first lines."""
        return Position(lines, self._ends[lines], self._widths)

    def bytes_between(self, first: int, last: int) -> int:
        """The size of lines `first` to `last` in the file."""
        return int(self._ends[last] - self._ends[first])

    def _chained(self, before: int, line: RoundRecord) -> int:
        content = before.to_bytes(8, "big") + line.model_dump_json().encode()
        return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big")
