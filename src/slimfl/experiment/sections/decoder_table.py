"""A measured decoder table in a CSV file: g P/c in dB, then one probability per message."""

from pathlib import Path

from slimfl.files import read_regular

#: Maximum size of a table.
MOST_BYTES, MOST_ROWS = 1 << 18, 2000


def read_table(path: Path) -> tuple[tuple[float, ...], ...]:
    """The rows of a file; a first line without numbers is its heading."""
    try:
        lines = read_regular(path, MOST_BYTES).decode().splitlines()
    except FileNotFoundError:
        raise ValueError(f"there is no decoder table {path}; give the path of a CSV file") from None
    except (OSError, ValueError):
        raise ValueError(f"the decoder table {path} cannot be read; give a CSV file") from None
    filled = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    rows = []
    for place, (number, line) in enumerate(filled):
        try:
            rows.append(tuple(float(part) for part in line.split(",")))
        except ValueError:
            if place:
                raise ValueError(
                    f"line {number} of the decoder table {path} is not a list of numbers separated "
                    "by commas; correct it"
                ) from None
    if not 1 <= len(rows) <= MOST_ROWS:
        raise ValueError(f"the decoder table {path} must have from 1 to {MOST_ROWS} rows")
    return tuple(rows)
