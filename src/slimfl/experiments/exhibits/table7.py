"""Table VII: what it costs until convergence."""

from __future__ import annotations

import math

from slimfl.experiments import grid, paper
from slimfl.experiments.exhibit import Exhibit, Recipe, Runs, Table, present
from slimfl.experiments.scale import ALPHAS, Scale
from slimfl.experiments.verdict import Claim, Comparison
from slimfl.federation import VANILLA_ALL
from slimfl.report import GroupRow, Spread, summarise

SETTINGS = [(channel, alpha) for alpha in ALPHAS for channel in grid.CHANNELS]
NAMES = ("SlimFL", "Vanilla FL-1.5x")


def rows_of(scale: Scale, runs: Runs, channel: str, alpha: float) -> list[GroupRow | None]:
    """The closing rows of SlimFL and of Vanilla FL-1.5x: two runs that stop on their own."""
    records = [
        record
        for method in grid.METHODS
        for record in present(runs, grid.setting(scale, channel, alpha, method))
    ]
    groups = {row.method: row for row in summarise(records).groups} if records else {}
    return [groups.get(name) for name in ("slimfl", VANILLA_ALL)]


def show(scale: Scale, runs: Runs) -> Exhibit:
    """Transmit power and operations until every width has converged."""
    found = {setting: rows_of(scale, runs, *setting) for setting in SETTINGS}
    table, claims = [], []
    for unit, printed, key in (
        ("W", paper.TABLE7_W, "paper_power_until_w"),
        ("GFLOPS", paper.TABLE7_GFLOPS, "paper_gflops_until"),
    ):
        for setting in SETTINGS:
            channel, alpha = setting
            pair = [
                _comparison(name, row, key, theirs, unit)
                for name, row, theirs in zip(NAMES, found[setting], printed[setting], strict=True)
            ]
            numbers = (word for one in pair for word in (f"{one.paper:g}", _word(one)))
            table.append([unit, channel, f"{alpha:g}", *numbers])
            what = "Communication" if unit == "W" else "Computing"
            claims.append(
                Claim(
                    f"{what} until convergence, {channel} channel, alpha = {alpha:g}",
                    "table VII",
                    tuple(pair),
                )
            )
    return Exhibit(
        name="table7",
        title="Table VII: cost until convergence",
        paper="SlimFL converges at a third of the communication (3.6 times less on the table's own "
        "average) and of the computing (2.8 times less) of Vanilla FL-1.5x.",
        table=Table(
            ["cost", "channel", "α", *(f"{who} {n}" for n in NAMES for who in ("paper", "ours"))],
            table,
        ),
        claims=[*claims, *_averages(found)],
        notes=[
            "Vanilla FL-1.5x is two runs that stop on their own. Converged: every width's mean "
            f"accuracy over {scale.convergence_window} rounds above "
            f"{scale.convergence_accuracy:.0%} and its deviation below 7.2% (E10).",
            'A cost is shown where every seed converged; "never" is within the rounds run.',
            scale.shortened,
        ],
    )


def _comparison(name: str, row: GroupRow | None, key: str, printed: float, unit: str) -> Comparison:
    digits = len(f"{printed:g}".partition(".")[2])
    if row is None:
        return Comparison(name, None, paper=printed, digits=digits, unit=unit)
    cost: Spread | None = getattr(row, key)
    if cost is None:
        cost = Spread(math.inf, None)
    deviation = cost.deviation or 0.0
    return Comparison(name, cost.mean, deviation, len(row.seeds), printed, 0.0, digits, unit)


def _word(one: Comparison) -> str:
    if one.ours is None:
        return "not run"
    return f"{one.ours:.3g}" if math.isfinite(one.ours) else "never"


def _averages(found: dict[tuple[str, float], list[GroupRow | None]]) -> list[Claim]:
    """How many times SlimFL is cheaper, on average over the settings where both converged (E8)."""
    claims = []
    for what, printed, key in (
        ("communication", paper.TABLE7_W, "paper_power_until_w"),
        ("computing", paper.TABLE7_GFLOPS, "paper_gflops_until"),
    ):
        ratios = []
        for slim, vanilla in found.values():
            ours = [getattr(row, key) for row in (slim, vanilla) if row is not None]
            if len(ours) == 2 and all(ours):
                ratios.append(ours[1].mean / ours[0].mean)
        theirs = [vanilla / slim for slim, vanilla in printed.values()]
        ran = all(row is not None for rows in found.values() for row in rows)
        mean = sum(ratios) / len(ratios) if ratios else math.inf if ran else None
        claims.append(
            Claim(
                f"Vanilla FL-1.5x costs more {what} until convergence than SlimFL: the mean ratio "
                f"over the settings where both converge (here {len(ratios)} of {len(found)})",
                "section VI-D, erratum E8",
                (
                    Comparison(
                        "Vanilla FL-1.5x over SlimFL",
                        mean,
                        paper=sum(theirs) / len(theirs),
                        digits=1,
                    ),
                    Comparison("as much", 1.0 if ratios else mean, paper=1.0, digits=1),
                ),
            )
        )
    return claims


TABLE7 = Recipe("table7", grid.all_cells, show)
