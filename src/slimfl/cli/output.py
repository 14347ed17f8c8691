"""Output of commands: results on standard output, everything else on standard error."""

import copy
import errno
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import click
import typer
from rich import box
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Column, Table

from slimfl.errors import RequestError

Json = Annotated[
    bool, typer.Option("--json", help="Print only one JSON document on standard output.")
]
Place = Annotated[
    str,
    typer.Option("--on", help="Run in parallel: local (one per core), ray, or ray://HOST:PORT."),
]

#: Words in columns of numbers.
NO_NUMBERS = ("infinite", "unlimited", "unknown")
#: Preferred minimum width of the first column of a table, and the width of what is no screen.
LABEL, NO_SCREEN = 16, 110


class Reply(NamedTuple):
    """What a command found: a document for programs, or what people read."""

    document: Any
    shown: Sequence[RenderableType] = ()
    remarks: Sequence[str] = ()
    """Lines beside the result, on standard error."""


def give(answer: Reply) -> None:
    """Print an answer as the command was asked to."""
    if wants_json():
        show_json(answer.document)
        return
    show(*answer.shown)
    for each in answer.remarks:
        remark(each)


def wants_json() -> bool:
    """Whether the running command was called with `--json`."""
    return bool(click.get_current_context().meta.get("json"))


def table(
    rows: Sequence[Mapping[str, Any]], title: str | None = None, caption: str | None = None
) -> Table:
    """A table for the terminal; columns of numbers are aligned on the right.

    Args:
        rows: The cells by heading, in the same order in every row; the first is the row's label.
        title: Above the table.
        caption: Below it.
    """
    made = Table(
        title=title,
        caption=caption,
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        title_justify="left",
        caption_justify="left",
    )
    for heading in rows[0] if rows else ():
        text = not made.columns or any(_is_text(row[heading]) for row in rows)
        made.add_column(heading, justify="left" if text else "right")
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


def show(*renderables: RenderableType) -> None:
    """Print a result for people."""
    # a file or a pipe has no width unless COLUMNS sets one
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else NO_SCREEN
    # no markup, as names and paths may contain square brackets
    console = Console(width=width, markup=False, emoji=False)
    for renderable in renderables:
        for part in fitting(renderable, console):
            console.print(part)


def fitting(renderable: RenderableType, console: Console) -> Iterator[RenderableType]:
    """Split a table that is too wide for a console into several; no number is cut off.

    Right-aligned columns contain numbers and are never wrapped; others may wrap. The first column
    labels the row and is repeated in every part.
    """
    if not isinstance(renderable, Table) or len(renderable.columns) < 2:
        yield renderable
        return
    boundless = console.options.update(max_width=100_000)
    for column in renderable.columns:
        texts = (column.header, *column.cells)
        widest = max(Measurement.get(console, boundless, text).maximum for text in texts)
        number = column.justify == "right"
        column.overflow, column.no_wrap = "fold", number
        column.min_width = widest if number else min(LABEL, widest)
    label, *others = renderable.columns
    parts: list[Table] = []
    for column in others:
        wider = _part(renderable, [*(parts[-1].columns if parts else [label]), column])
        if parts and Measurement.get(console, boundless, wider).minimum <= console.width:
            parts[-1] = wider
        else:
            parts.append(_part(renderable, [label, column]))
    parts[0].title, parts[-1].caption = renderable.title, renderable.caption
    yield from parts


def _part(table: Table, columns: Sequence[Column]) -> Table:
    """A table of some of the columns."""
    part = copy.copy(table)
    part.title = part.caption = None
    part.columns = [replace(column, _index=number) for number, column in enumerate(columns)]
    return part


def show_json(document: Any) -> None:
    """Print a result for programs."""
    print(json.dumps(document, indent=2, allow_nan=False, default=str))


def aside() -> Console:
    """The console for progress and remarks."""
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
    try:
        return None if text is None else tuple(map(float, text.split(",")))
    except ValueError:
        shown = text if len(text or "") <= 60 else f"{str(text)[:57]}..."
        raise RequestError(f"{option} takes numbers separated by commas, not {shown!r}") from None


def check_writable(path: Path, *suffixes: str) -> None:
    """Refuse a file that cannot be written, before the work for its contents begins."""
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
