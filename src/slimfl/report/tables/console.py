"""The closing table and the comparison as rich renderables.

Callers must print them on a console without markup, as names and paths may contain square brackets.
"""

from collections.abc import Callable, Iterable, Sequence

from rich import box
from rich.table import Table

from slimfl.report.tables import number_format as cells
from slimfl.results.learned import ERRORS
from slimfl.results.records import RunRecord
from slimfl.results.seed_summary import GroupSummary
from slimfl.results.summary import summarise


def closing_table(records: Iterable[RunRecord]) -> Table:
    """The most important results of runs; fits 80 columns with two widths."""
    summary = summarise(records)
    rows = summary.groups
    widths = cells.width_names(rows)
    headings = [
        "\nrounds",
        *(f"{width}\naccuracy %" for width in widths),
        "delivered %\nper segment",
        "sending\nJ",
        "conver-\nged in",
    ]

    def values(row: GroupSummary) -> list[str]:
        return [
            cells.rounds(row),
            *(cells.percent(row.accuracy.get(width)) for width in widths),
            " / ".join(map(cells.share, row.delivered_share)),
            cells.number(row.energy_j),
            cells.converged(row),
        ]

    table = _table("Final accuracy and what it cost", headings, rows, values)
    spent = dict.fromkeys(cells.privacy(run) for run in summary.runs if run.privacy)
    if spent:
        table.caption = (
            f"{table.caption}\ndifferential privacy, epsilon (delta): {', '.join(spent)}"
        )
    said = [each.words for each in summary.budgets] + [each.words for each in summary.averaged]
    for words in said:
        table.caption = f"{table.caption}\n{words}"
    return table


def compare_table(records: Iterable[RunRecord]) -> Table:
    """More columns, and each accuracy's difference from the first row in points."""
    rows = summarise(records).groups
    widths = cells.width_names(rows)
    headings = [
        *(f"{width}\naccuracy %" for width in widths),
        "deliv-\nered %",
        "decoded,\ndropped\nMB",
        "energy J\nin all,\nto conv.",
        "conver-\nged in\nround",
        "to conv.\nW,\nGFLOPS",
    ]

    def values(row: GroupSummary) -> list[str]:
        moved = (cells.plain(cells.total(mb)) for mb in (row.decoded_mb, row.dropped_mb))
        return [
            *(_with_difference(row, width, rows) for width in widths),
            "\n".join(map(cells.share, row.delivered_share)),
            "\n".join(moved),
            f"{cells.number(row.energy_j)}\n{cells.number(row.energy_until_j)}",
            cells.converged(row),
            f"{cells.number(row.paper_power_until_w)}\n{cells.number(row.paper_gflops_until)}",
        ]

    title = "Comparison; in brackets: difference in points from the first row with that width"
    return _table(title, headings, rows, values)


def _table(
    title: str,
    headings: Sequence[str],
    rows: Sequence[GroupSummary],
    values: Callable[[GroupSummary], list[str]],
) -> Table:
    """Rows under the heading of their scene, if there are several."""
    table = Table(
        title=title,
        title_justify="left",
        caption=_caption(rows),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    table.add_column("method", overflow="fold")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True, vertical="top")
    scenes = list(dict.fromkeys(row.scene for row in rows))
    for scene in scenes:
        if len(scenes) > 1:
            table.add_section()
            table.add_row(scene, style="italic")
        for row in rows:
            if row.scene == scene:
                table.add_row(row.name, *values(row), style="dim" if row.computed else "")
    return table


def _caption(rows: Sequence[GroupSummary]) -> str:
    seeds = {len(row.seeds) for row in rows}
    if seeds == {1}:
        deviation = "± is the deviation over the last evaluated rounds"
    elif 1 in seeds:
        deviation = "± is the deviation over seeds, or over the last rounds for a single seed"
    else:
        deviation = f"± is the deviation over {'/'.join(map(str, sorted(seeds)))} seeds"
    scenes = {row.scene for row in rows}
    where = f"{scenes.pop()}; " if len(scenes) == 1 else ""
    return f"{where}{deviation}{_not_learned(rows)}"


def _not_learned(rows: Sequence[GroupSummary]) -> str:
    """A warning about methods that are not better than guessing."""
    tested = [(row, width) for row in rows if not row.computed for width in row.accuracy]
    guessing = [(row, width) for row, width in tested if not row.has_learned(width)]
    if not guessing:
        return ""
    limit = 100 * max(row.learned_above for row, _ in guessing)
    which = "no network has learned yet"
    if len(guessing) < len(tested):
        named = dict.fromkeys(f"{row.name} at {width}" for row, width in guessing)
        which = f"not learned yet: {', '.join(named)}"
    return (
        f"\n{which} (not above {limit:.1f} %, which is guessing plus {ERRORS:.0f} standard errors)"
    )


def _with_difference(row: GroupSummary, width: str, rows: list[GroupSummary]) -> str:
    """Relative to the first row that has the width, so that no column stays empty."""
    own = row.accuracy.get(width)
    first = next(other for other in rows if width in other.accuracy)
    if own is None or row is first:
        return cells.percent(own)
    points = round(100 * (own.final.mean - first.accuracy[width].final.mean), 1) + 0.0  # no -0.0
    return f"{cells.percent(own)}\n({points:+.1f})"
