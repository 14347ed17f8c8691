"""Output of commands: results on standard output, everything else on standard error."""

import errno
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

Json = Annotated[
    bool, typer.Option("--json", help="Print only one JSON document on standard output.")
]
On = Annotated[
    str | None,
    typer.Option(
        help="Run in parallel: local (one run per core), ray, or ray://HOST:PORT.",
        show_default="one run after the other, on all cores",
    ),
]
Place = Annotated[
    str,
    typer.Option("--on", help="Run in parallel: local (one per core), ray, or ray://HOST:PORT."),
]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder with the dataset.", show_default="search, then download"),
]


#: Words in columns of numbers.
NO_NUMBERS = ("infinite", "unlimited", "unknown")


def table(
    rows: Sequence[Mapping[str, Any]], title: str | None = None, caption: str | None = None
) -> "Table":
    """A table of rows with the same headings; columns of numbers are aligned on the right."""
    from rich import box
    from rich.table import Table

    made = Table(
        title=title,
        caption=caption,
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        title_justify="left",
        caption_justify="left",
    )
    for heading in rows[0] if rows else ():
        first = not made.columns
        text = any(_is_text(row[heading]) for row in rows)
        made.add_column(heading, justify="left" if first or text else "right")
    for row in rows:
        made.add_row(*map(_cell, row.values()))
    return made


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value[:1].isalpha() and value not in NO_NUMBERS


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case int():
            return f"{value:,}"
        case float():
            return "infinite" if abs(value) == float("inf") else f"{value:.4g}"
    return str(value)


def show(*renderables: "RenderableType") -> None:
    """Print a result for people."""
    from rich.console import Console

    from slimfl.cli.fitting import fitting

    # a file or a pipe has no width unless COLUMNS sets one
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 110
    # no markup, as names and paths may contain square brackets
    console = Console(width=width, markup=False, emoji=False)
    for renderable in renderables:
        for part in fitting(renderable, console):
            console.print(part)


def show_json(document: Any) -> None:
    """Print a result for programs."""
    print(json.dumps(document, indent=2, allow_nan=False, default=str))


def aside() -> "Console":
    """The console for progress and remarks."""
    from rich.console import Console

    return Console(stderr=True, markup=False, emoji=False)


def remark(text: str) -> None:
    """Print a line beside the result."""
    aside().print(text, highlight=False, soft_wrap=True)


def finite(value: float) -> float | None:
    """None for an infinite value, as JSON has no infinity."""
    return value if abs(value) != float("inf") and value == value else None


def duration(seconds: float) -> str:
    """A duration for people.

    >>> duration(40), duration(90 * 60), duration(150)
    ('1 min', '1 h 30 min', '2 min')
    """
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min"


def floats(text: str | None, option: str) -> tuple[float, ...] | None:
    """The numbers in `0.8,0.2`."""
    from slimfl.errors import RequestError

    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        raise RequestError(f"{option} takes numbers separated by commas, not {shown!r}") from None


def check_writable(path: Path, *suffixes: str) -> None:
    """Refuse a file that cannot be written, before the work for its contents begins."""
    from slimfl.errors import RequestError

    if suffixes and path.suffix.lower() not in suffixes:
        raise RequestError(f"{path} cannot be written; end its name in {' or '.join(suffixes)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with tempfile.TemporaryFile(dir=path.parent):
            pass
        path.exists()  # a name may be too long
    except OSError as error:
        raise RequestError(
            f"{path} cannot be written ({error.strerror}); choose another --out"
        ) from None
