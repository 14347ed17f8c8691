"""The report's tables as HTML. A cell carries its exact value as `data-value` beside the text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from slimfl.report.tables import number_format as cells
from slimfl.results.seed_summary import GroupSummary, Spread
from slimfl.results.summary import Summary


@dataclass(frozen=True)
class Column:
    """One cell per row, under a heading that it may share with its neighbours."""

    over: str
    heading: str
    cells: list[str]


def closing(rows: list[GroupSummary]) -> str:
    """Accuracies and deliveries."""
    columns = [
        Column("", "seeds", [_cell("seeds", str(len(row.seeds))) for row in rows]),
        Column("", "rounds", [_cell("rounds", cells.rounds(row)) for row in rows]),
    ]
    for width in cells.width_names(rows):
        own = [row.accuracy.get(width) for row in rows]
        key = f"accuracy.{width}"
        final = [_cell(key, cells.percent(a), a.final.mean if a else None) for a in own]
        columns.append(Column("accuracy, %", width, final))
    for segment in range(max(len(row.delivered_share) for row in rows)):
        shares = [_at(row.delivered_share, segment) for row in rows]
        key = f"delivered.{segment + 1}"
        made = [_cell(key, cells.share(s), s.mean if s else None) for s in shares]
        columns.append(Column("delivered, %", f"segment {segment + 1}", made))
    reached = [_cell("converged_round", cells.converged(row)) for row in rows]
    speed = [row.images_per_s for row in rows]
    columns += [
        Column("converged", "in round", reached),
        Column("training", "images/s", _spreads("images_per_s", speed)),
    ]
    return _rows("closing-table", rows, columns)


def costs(rows: list[GroupSummary]) -> str:
    """Costs in total and until convergence."""
    columns = []
    for word in ("decoded", "dropped"):
        sums = [cells.total(getattr(row, f"{word}_mb")) for row in rows]
        made = [_cell(f"{word}_mb", cells.plain(value), value) for value in sums]
        columns.append(Column("in the whole run", f"{word}, MB", made))
    for over, heading, key in (
        ("in the whole run", "airtime, s", "airtime_s"),
        ("in the whole run", "energy, J", "energy_j"),
        ("in the whole run", "power, W", "paper_power_w"),
        ("in the whole run", "computing, GFLOPS", "paper_gflops"),
        ("until convergence", "energy, J", "energy_until_j"),
        ("until convergence", "power, W", "paper_power_until_w"),
        ("until convergence", "computing, GFLOPS", "paper_gflops_until"),
    ):
        columns.append(Column(over, heading, _spreads(key, [getattr(row, key) for row in rows])))
    return _rows("cost-table", rows, columns)


def runs(summary: Summary) -> str:
    """Every single run."""
    widths = cells.width_names(summary.groups)
    head = ["method", "seed", "rounds", *(f"{width} accuracy (best), %" for width in widths),
            "energy, J", "converged in round", "refused updates"]  # fmt: skip
    private = any(run.privacy for run in summary.runs)
    head += ["epsilon (delta)"] if private else []
    body = []
    for run in summary.runs:
        accuracies = [
            f"{100 * own.final:.1f} ± {100 * own.deviation:.1f} ({100 * own.best:.1f})"
            if (own := run.accuracy.get(width))
            else cells.NONE
            for width in widths
        ]
        reached = cells.NONE if run.converged_round is None else str(run.converged_round)
        rounds = f"{run.rounds_done}/{run.rounds_asked}"
        energy = cells.plain(run.total.energy_j)
        values = [str(run.seed), rounds, *accuracies, energy, reached, str(run.refused)]
        values += [cells.privacy(run)] if private else []
        cells_of_run = "".join(f"<td>{escape(value)}</td>" for value in values)
        body.append(f"<tr><th scope='row'>{escape(run.method)}</th>{cells_of_run}</tr>")
    return table("run-table", head, body)


def _rows(key: str, rows: list[GroupSummary], columns: list[Column]) -> str:
    several = len({row.scene for row in rows}) > 1
    body = []
    for number, row in enumerate(rows):
        where = f"<small>{escape(row.scene)}</small>" if several else ""
        kind = " class='computed'" if row.computed else ""
        values = "".join(column.cells[number] for column in columns)
        body.append(
            f'<tr{kind} data-method="{escape(row.method)}" data-scene="{escape(row.scene)}">'
            f"<th scope='row'>{escape(row.name)}{where}</th>{values}</tr>"
        )
    shared = "".join(
        f"<th scope='colgroup' colspan='{len(list(same))}'>{escape(over)}</th>"
        for over, same in groupby(columns, key=lambda column: column.over)
    )
    heading = ["method", *(column.heading for column in columns)]
    return table(key, heading, body, f"<tr class='over'><th></th>{shared}</tr>")


def _spreads(key: str, spreads: Sequence[Spread | None]) -> list[str]:
    return [_cell(key, cells.number(s), s.mean if s else None) for s in spreads]


def _at(shares: list[Spread | None], segment: int) -> Spread | None:
    return shares[segment] if segment < len(shares) else None


def _cell(key: str, text: str, value: float | None = None) -> str:
    exact = "" if value is None else f' data-value="{value!r}"'
    return f'<td data-key="{escape(key)}"{exact}>{escape(text)}</td>'


def table(key: str, head: Iterable[str], body: Iterable[str], over: str = "") -> str:
    """A table that scrolls separately on a narrow screen; the body's rows are HTML."""
    columns = "".join(f"<th scope='col'>{escape(name)}</th>" for name in head)
    label = key.replace("-", " ")
    return (
        f"<div class='scroll' tabindex='0' role='region' aria-label='{label}'><table id='{key}'>"
        f"<thead>{over}<tr>{columns}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )
