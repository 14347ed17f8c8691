"""Tables on narrow screens: no line is too long and no number is lost."""

import re
from io import StringIO

import pytest
from rich.console import Console
from rich.table import Table

from slimfl.cli.output import fitting
from slimfl.report.tables import console_tables


def printed(renderable, width: int) -> str:
    console = Console(width=width, file=StringIO(), markup=False)
    for part in fitting(renderable, console):
        console.print(part)
    return console.file.getvalue()


def numbers(text: str) -> list[str]:
    """Every number with its deviation; a name such as FL-0.5x is none."""
    return sorted(re.findall(r"(?<![\w.-])\d[\d.,/]*(?: [±/] \d[\d.]*)*(?![\w.])", text))


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("differences", [False, True])
def test_nothing_is_cut_off(paper_runs, differences, width):
    wide, narrow = (
        "".join(printed(table, columns) for table in console_tables(paper_runs, differences))
        for columns in (400, width)
    )
    assert max(map(len, narrow.splitlines())) <= width
    assert "…" not in narrow
    assert numbers(narrow) == numbers(wide)
    assert len(numbers(wide)) > 15


def test_the_closing_table_is_one_table_on_80_columns(paper_runs):
    [table] = console_tables(paper_runs)
    lines = printed(table, 80).splitlines()
    assert sum(line.split()[:1] == ["method"] for line in lines) == 1


def test_five_widths_on_80_columns(make_run):
    widths = [0.2, 0.4, 0.6, 0.8, 1.0]
    per_segment = dict.fromkeys(("bits_sent", "bits_decoded", "bits_dropped"), [8e6] * 5)
    run = make_run(
        curves={f"{w}x": [0.123 + w / 2] for w in widths},
        experiment={"model__widths": widths},
        delivered=[2] * 5,
        **per_segment,
    )
    [table] = console_tables([run])
    text = printed(table, 80)
    assert max(map(len, text.splitlines())) <= 80
    for width in widths:
        assert f"{100 * (0.123 + width / 2):.1f} ± 0.0" in text


def test_text_wraps_and_a_number_does_not():
    table = Table("name", title="a title")
    table.add_column("what it says")
    table.add_column("count", justify="right")
    table.add_row("first", "a sentence of several words that is too long", "1,234,567,890")
    text = printed(table, 44)
    assert "1,234,567,890" in text
    assert text.count("first") == 1, "one table"
    assert max(map(len, text.splitlines())) <= 44
