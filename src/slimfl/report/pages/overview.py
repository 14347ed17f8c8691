"""All settings of a report at a glance, at the top of a page that has several."""

from collections.abc import Sequence
from html import escape

from slimfl.report.pages.conclusions import Ranking
from slimfl.report.tables import number_format as cells
from slimfl.report.tables.html import table
from slimfl.results.seed_summary import GroupSummary
from slimfl.results.summary import Summary


def overview(rankings: Sequence[Ranking], summary: Summary) -> str:
    """One row per setting: who leads at each width, and what SlimFL saves on the air."""
    widths = sorted({each.width for each in rankings}, key=lambda name: float(name[:-1]))
    head = ["setting", *(f"{width}: most accurate" for width in widths), "energy without SlimFL"]
    body = []
    for scene in dict.fromkeys(row.scene for row in summary.groups):
        found = {each.width: each for each in rankings if each.scene == scene}
        values = [_leader(found.get(width)) for width in widths]
        values.append(_energy_ratio([row for row in summary.groups if row.scene == scene]))
        line = "".join(f"<td>{escape(value)}</td>" for value in values)
        body.append(
            f'<tr data-scene="{escape(scene)}"><th scope="row">{escape(scene)}</th>{line}</tr>'
        )
    return table("overview-table", head, body)


def _leader(ranking: Ranking | None) -> str:
    if ranking is None:
        return cells.NONE
    if not ranking.leaders:
        return "none has learned yet"

    def percent(row: GroupSummary) -> str:
        return f"{row.name} {100 * row.accuracy[ranking.width].final.mean:.1f} %"

    first, *tied = ranking.leaders
    if tied:
        return "not told apart: " + ", ".join(map(percent, ranking.leaders))
    if not ranking.behind:
        return percent(first)
    means = [row.accuracy[ranking.width].final.mean for row in (first, ranking.behind[0])]
    return f"{percent(first)} (+{100 * (means[0] - means[1]):.1f})"


def _energy_ratio(rows: Sequence[GroupSummary]) -> str:
    slim = next((row for row in rows if row.method == "slimfl"), None)
    every = next((row for row in rows if row.computed), None)
    if slim is None or every is None or not slim.energy_j.mean:
        return cells.NONE
    return f"{every.energy_j.mean / slim.energy_j.mean:.2f} times"
