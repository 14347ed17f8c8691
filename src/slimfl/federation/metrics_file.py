"""Reading metrics.jsonl: one line per round, numbered 1, 2, 3 and so on without a gap."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slimfl.errors import RequestError
from slimfl.files import read_plain

Line = dict[str, Any]


@dataclass(frozen=True)
class IntactLines:
    """The lines of a metrics file up to the first one that is wrong."""

    lines: list[Line]
    size_bytes: int
    damage: str | None
    """What is wrong with the next line, None if there is none; a line that was cut short at the
    end of the file is what a kill leaves, and no damage."""


def read_intact(path: Path) -> IntactLines:
    """The rounds that a metrics file tells of; a file that is not there tells of none."""
    try:
        text = read_plain(path)
    except FileNotFoundError:
        return IntactLines([], 0, None)
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}") from None
    lines: list[Line] = []
    size = 0
    for number, raw in enumerate(text.split(b"\n")[:-1], 1):
        try:
            line = _line(raw, number)
        except ValueError as error:
            return IntactLines(lines, size, f"line {number} of {path} {error}")
        lines.append(line)
        size += len(raw) + 1
    return IntactLines(lines, size, None)


def _line(raw: bytes, number: int) -> Line:
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        raise ValueError("is damaged") from None
    if not isinstance(line, dict) or type(line.get("round")) is not int:
        raise ValueError("is damaged")
    if line["round"] != number:
        raise ValueError(f"is of round {line['round']}")
    return line
