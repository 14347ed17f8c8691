"""Split a table that is too wide for the screen into several; no number is cut off.

Right-aligned columns contain numbers and are never wrapped; others may wrap. The first column
labels the row and is repeated in every part.
"""

from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

#: Preferred minimum width of the first column.
LABEL = 16


def fitting(renderable: RenderableType, console: Console) -> Iterator[RenderableType]:
    """Split a table for a console's width; other renderables pass unchanged."""
    if isinstance(renderable, Group):
        for part in renderable.renderables:
            yield from fitting(part, console)
    elif isinstance(renderable, Table) and len(renderable.columns) > 1:
        yield from _parts(renderable, console)
    else:
        yield renderable


def _parts(table: Table, console: Console) -> Iterator[Table]:
    label, *others = table.columns
    chosen: list[list[Column]] = [[]]
    for column in others:
        if chosen[-1] and _needed(table, [label, *chosen[-1], column], console) > console.width:
            chosen.append([])
        chosen[-1].append(column)
    if len(chosen) == 1 and _natural(table, table.columns, console) <= console.width:
        yield table
        return
    for number, columns in enumerate(chosen):
        part = _part(table, [label, *columns])
        part.title = table.title if number == 0 else None
        part.caption = table.caption if number == len(chosen) - 1 else None
        yield part


def _part(table: Table, columns: Sequence[Column]) -> Table:
    """A table of some of the columns, with numbers that are never shortened."""
    part = Table(
        box=table.box,
        pad_edge=table.pad_edge,
        collapse_padding=table.collapse_padding,
        title_justify=table.title_justify,
        caption_justify=table.caption_justify,
        show_header=table.show_header,
    )
    for column in columns:
        number = column.justify == "right"
        part.add_column(
            column.header,
            justify=column.justify,
            vertical=column.vertical,
            overflow="fold",
            no_wrap=number,
            min_width=_widest(column) if number else None,
        )
    cells = [list(column.cells) for column in columns]
    for i, row in enumerate(table.rows):
        values = [column[i] for column in cells]
        part.add_row(*values, style=row.style, end_section=row.end_section)
    return part


def _needed(table: Table, columns: Sequence[Column], console: Console) -> int:
    """The minimum width at which these columns lose nothing."""
    saved = sum(
        _widest(column) - max(_longest_word(column), min(LABEL, _widest(column)))
        for column in columns
        if column.justify != "right"
    )
    return _natural(table, columns, console) - saved


def _natural(table: Table, columns: Sequence[Column], console: Console) -> int:
    """The width at which nothing is wrapped."""
    boundless = console.options.update(max_width=100_000)
    return Measurement.get(console, boundless, _part(table, columns)).maximum


def _lines(column: Column) -> Iterator[str]:
    for cell in (column.header, *column.cells):
        text = cell.plain if isinstance(cell, Text) else str(cell)
        yield from text.split("\n")


def _widest(column: Column) -> int:
    return max(map(len, _lines(column)))


def _longest_word(column: Column) -> int:
    return max((len(word) for line in _lines(column) for word in line.split()), default=0)
