"""The rounds that were read from one metrics file, in a form that other threads may look at.

One thread appends, others read. They see a row only after all that belongs to it is there, and a
file that is read anew gets a new log.
"""

import hashlib
from array import array

from slimfl.federation import RoundRecord
from slimfl.federation.storage.record import Position


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
        self.rows.append(row)  # last: whoever sees the row finds the rest

    def ends_with(self, line: RoundRecord, behind: Position) -> bool:
        """Whether this is the last line, at the same place in the file."""
        last = len(self.rows)
        return (last, self._ends[last]) == (behind.lines, behind.size_bytes) and self._chain[
            last
        ] == self._chained(self._chain[last - 1], line)

    def digest(self, lines: int) -> str:
        """The fingerprint of the first lines; whoever has the same one has the same rounds."""
        return f"{self._chain[lines]:016x}"

    def position(self, lines: int) -> Position:
        """Where to read on after the first lines."""
        return Position(lines, self._ends[lines], self._widths)

    def bytes_between(self, first: int, last: int) -> int:
        """What the lines after `first` up to `last` take on the disk."""
        return int(self._ends[last] - self._ends[first])

    def _chained(self, before: int, line: RoundRecord) -> int:
        content = before.to_bytes(8, "big") + line.model_dump_json().encode()
        return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big")
