"""Table VII: the costs until convergence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from lab.reproduction import paper
from lab.reproduction.cells.scale import ALPHAS, Scale
from lab.reproduction.exhibits import table3_runs as grid
from lab.reproduction.exhibits.exhibit import UNFINISHED, Exhibit, Recipe, Runs, Table
from lab.reproduction.judging.verdict import Claim, Comparison, Measure, Subject
from slimfl.methods import VANILLA_ALL, expand
from slimfl.results import RunRecord
from slimfl.results.run_summary import Costs
from slimfl.round import convergence, finished

SETTINGS = [(channel, alpha) for alpha in ALPHAS for channel in grid.CHANNELS]
METHODS = {"SlimFL": ["slimfl"], "Vanilla FL-1.5x": expand([VANILLA_ALL], (0.5, 1.0))}


@dataclass(frozen=True)
class Until:
    """Costs of one method until convergence for each seed; None if it never converged."""

    seeds: dict[int, Costs | None]
    settled: bool
    """True if more rounds would change nothing, and there are enough seeds."""
    planned: int
    """Number of seeds in the end."""

    @property
    def seeds_planned(self) -> int | None:
        """Number of seeds in the end; None if no more are planned."""
        return self.planned if len(self.seeds) < self.planned else None

    def by_seed(self, key: str) -> dict[int, float]:
        """One cost for each seed; infinite if it never converged."""
        return {seed: getattr(cost, key) if cost else math.inf for seed, cost in self.seeds.items()}

    def spread(self, key: str) -> tuple[float, float]:
        """Mean and deviation over seeds; infinite unless every seed converged."""
        values = list(self.by_seed(key).values())
        if math.inf in values:
            return math.inf, 0.0
        return fmean(values), stdev(values) if len(values) > 1 else 0.0


def until_convergence(record: RunRecord) -> Costs | None:
    """The costs of a run up to the first round of the window in which it converged.

    This is how the paper counts: its 15 rounds for SlimFL at alpha = 10 cannot end a window of 100.
    """
    section = record.experiment.federation
    passed = convergence(record.lines, section)
    if passed is None:
        return None
    return Costs.of(record.lines[: max(1, passed - section.convergence_window + 1)])


def until(scale: Scale, runs: Runs, channel: str, alpha: float, methods: list[str]) -> Until | None:
    """The costs of independent runs, added up seed by seed; None before they ran.

    Seeds that more rounds may change count only while there are no others. One seed of several is
    not enough: a single cost says nothing about its spread.
    """
    columns = [grid.setting(scale, channel, alpha, method) for method in methods]
    seeds: dict[int, Costs | None] = {}
    settled = {}
    for cells in zip(*columns, strict=True):
        if all(cell in runs and runs[cell].evaluated for cell in cells):
            seed = cells[0].experiment.seed
            seeds[seed] = _total([until_convergence(runs[cell]) for cell in cells])
            settled[seed] = all(_settled(runs[cell]) for cell in cells)
    if not seeds:
        return None
    sure = {seed: cost for seed, cost in seeds.items() if settled[seed]}
    planned = len(columns[0])
    return Until(sure or seeds, len(sure) >= min(2, planned), planned)


def same_seeds(pair: list[Until | None]) -> list[Until | None]:
    """Over the seeds that both have; unsettled if these are too few."""
    first, second = pair
    if first is None or second is None:
        return pair
    common = sorted(first.seeds.keys() & second.seeds.keys())
    if len(common) < min(2, first.planned):
        return [replace(each, settled=False) for each in (first, second)]
    return [
        replace(each, seeds={seed: each.seeds[seed] for seed in common}) for each in (first, second)
    ]


def _total(costs: list[Costs | None]) -> Costs | None:
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(costs):
        return None
    total = known[0]
    for cost in known[1:]:
        total = total + cost
    return total


def _settled(record: RunRecord) -> bool:
    """True if a run has converged, or has ended without convergence."""
    section = record.experiment.federation
    return convergence(record.lines, section) is not None or finished(
        record.experiment, record.lines
    )


def show(scale: Scale, runs: Runs) -> Exhibit:
    """Transmit power and operations until every width has converged."""
    found = {
        setting: same_seeds([until(scale, runs, *setting, methods) for methods in METHODS.values()])
        for setting in SETTINGS
    }
    table, claims = [], []
    for unit, printed, key in (
        ("W", paper.TABLE7_W, "paper_power_w"),
        ("GFLOPS", paper.TABLE7_GFLOPS, "paper_gflops"),
    ):
        for setting in SETTINGS:
            channel, alpha = setting
            pair = [
                _comparison(name, row, key, theirs, unit)
                for name, row, theirs in zip(METHODS, found[setting], printed[setting], strict=True)
            ]
            numbers = (word for one in pair for word in (f"{one.paper:g}", _word(one)))
            table.append([unit, channel, f"{alpha:g}", *numbers])
            what, measure = (
                ("Communication", Measure.POWER_TO_CONVERGE)
                if unit == "W"
                else ("Computing", Measure.COMPUTING_TO_CONVERGE)
            )
            claims.append(
                Claim(
                    f"{what} until convergence, {channel} channel, alpha = {alpha:g}",
                    "table VII",
                    tuple(pair),
                    pairs=((1, 0),),  # the extra cost of Vanilla FL-1.5x
                    about=Subject(measure, channel, alpha),
                )
            )
    return Exhibit(
        name="table7",
        title="Table VII: cost until convergence",
        paper="SlimFL converges at a third of the communication (3.6 times less on the table's own "
        "average) and of the computing (2.8 times less) of Vanilla FL-1.5x.",
        table=Table(
            ["cost", "channel", "α", *(f"{who} {n}" for n in METHODS for who in ("paper", "ours"))],
            table,
        ),
        claims=[*claims, *_averages(found)],
        notes=[
            "Vanilla FL-1.5x is two runs that stop on their own. Converged: every width's mean "
            f"accuracy over {scale.convergence_window} rounds above "
            f"{scale.convergence_accuracy:.0%} and its deviation below 7.2%; costs are counted up "
            "to the first of these rounds (E10).",
            'A cost is shown if every seed converged; "never" means not in the rounds run.',
            scale.shortened,
        ],
    )


def _comparison(name: str, costs: Until | None, key: str, printed: float, unit: str) -> Comparison:
    digits = len(f"{printed:g}".partition(".")[2])
    if costs is None:
        return Comparison(name, None, paper=printed, digits=digits, unit=unit)
    mean, deviation = costs.spread(key)
    return Comparison(
        name,
        mean,
        deviation,
        len(costs.seeds),
        printed,
        0.0,
        digits,
        unit,
        costs.settled,
        costs.seeds_planned,
        costs.by_seed(key),
    )


def _word(one: Comparison) -> str:
    if one.ours is None:
        return "not run"
    word = f"{one.ours:.3g}"
    if math.isinf(one.ours):
        some = f"only in {one.seeds_reached} of {len(one.by_seed)} seeds"
        word = some if one.seeds_reached else "never"
    if not one.finished:
        return f"{word}{UNFINISHED}"
    return f"{word} ({one.seeds} of {one.seeds_planned} seeds)" if one.seeds_planned else word


def _averages(found: dict[tuple[str, float], list[Until | None]]) -> list[Claim]:
    """How many times cheaper SlimFL is, on average over settings in which both converged (E8)."""
    claims = []
    for what, printed, key in (
        ("communication", paper.TABLE7_W, "paper_power_w"),
        ("computing", paper.TABLE7_GFLOPS, "paper_gflops"),
    ):
        known = [pair for pair in found.values() if None not in pair]
        costs = [[one.spread(key)[0] for one in pair if one] for pair in known]
        ratios = [theirs / ours for ours, theirs in costs if math.isfinite(ours + theirs)]
        by_seed = _ratio_by_seed([pair for pair in known if _converged(pair, key)], key)
        theirs = [vanilla / slim for slim, vanilla in printed.values()]
        ran = len(known) == len(found)
        settled = ran and all(one.settled for pair in known for one in pair if one)
        more = max((one.seeds_planned or 0 for pair in known for one in pair if one), default=0)
        mean = fmean(ratios) if ratios else math.inf if ran else None
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
                        finished=settled,
                        seeds_planned=more or None,
                        by_seed=by_seed,
                    ),
                    Comparison("as much", 1.0 if ratios else mean, paper=1.0, digits=1),
                ),
                pairs=((0, 1),),
            )
        )
    return claims


def _converged(pair: list[Until | None], key: str) -> bool:
    return all(one and math.isfinite(one.spread(key)[0]) for one in pair)


def _ratio_by_seed(pairs: list[list[Until | None]], key: str) -> dict[int, float]:
    """For each seed that all settings have, the mean cost ratio over settings."""
    costs = [[one.by_seed(key) for one in pair if one] for pair in pairs]
    seeds = set.intersection(*(set(each) for pair in costs for each in pair)) if costs else set()
    return {
        seed: fmean(theirs[seed] / ours[seed] for ours, theirs in costs) for seed in sorted(seeds)
    }


TABLE7 = Recipe("table7", grid.all_cells, show)
