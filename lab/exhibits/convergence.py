"""Table VII: the costs until convergence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from lab import paper
from lab.exhibits.accuracies import grid_arm, grid_cells
from lab.judge import Claim, judged
from lab.question import Answer, Question, Runs, Table
from lab.scale import Scale
from slimfl.methods import VANILLA_ALL, expand
from slimfl.results.per_run import Spent
from slimfl.results.records import RunRecord
from slimfl.results.statistics import paired
from slimfl.round import convergence, finished

METHODS = {"SlimFL": ["slimfl"], "Vanilla FL-1.5x": expand([VANILLA_ALL], (0.5, 1.0))}
COSTS = {"watts": ("W", "paper_power_w", "communication"),
         "gflops": ("GFLOPS", "paper_gflops", "computing")}  # fmt: skip


@dataclass(frozen=True)
class Until:
    """Spent of one method until convergence for each seed; None if it never converged."""

    seeds: Mapping[int, Spent | None]
    settled: bool
    """True if more rounds would change nothing."""
    planned: int

    def by_seed(self, key: str) -> dict[int, float]:
        """One cost for each seed that converged."""
        return {seed: getattr(cost, key) for seed, cost in self.seeds.items() if cost}

    def words(self, key: str) -> str:
        """For the table: a mean if every seed converged."""
        values = list(self.by_seed(key).values())
        word = "never" if not values else f"only in {len(values)} of {len(self.seeds)} seeds"
        if len(values) == len(self.seeds):
            word = f"{fmean(values):.3g}"
        if not self.settled:
            return f"{word}, unfinished"
        few = len(self.seeds) < self.planned
        return f"{word} ({len(self.seeds)} of {self.planned} seeds)" if few else word

    def spread(self, key: str) -> tuple[float, float]:
        """Mean and deviation over the seeds that converged."""
        values = list(self.by_seed(key).values())
        return fmean(values), stdev(values) if len(values) > 1 else 0.0


def until_convergence(record: RunRecord) -> Spent | None:
    """The costs of a run up to the first round of the window in which it converged.

    This is how the paper counts: its 15 rounds for SlimFL at alpha = 10 cannot end a window of 100.
    """
    section = record.experiment.federation
    passed = convergence(record.lines, section)
    if passed is None:
        return None
    return Spent.of(record.lines[: max(1, passed - section.convergence_window + 1)])


def until(
    scale: Scale, runs: Runs, channel: str, alpha: float, methods: Sequence[str]
) -> Until | None:
    """The costs of independent runs, added up seed by seed; None before they ran.

    Seeds that more rounds may change count only while there are no others.
    """
    columns = [grid_arm(channel, alpha, method).cells(scale) for method in methods]
    seeds: dict[int, Spent | None] = {}
    settled = {}
    for cells in zip(*columns, strict=True):
        if all(cell in runs and runs[cell].evaluated for cell in cells):
            seed = cells[0].experiment.seed
            costs = [until_convergence(runs[cell]) for cell in cells]
            known = [cost for cost in costs if cost is not None]
            whole = known[0] if known else None
            for cost in known[1:]:
                whole = cost + whole if whole else cost
            seeds[seed] = whole if len(known) == len(costs) else None
            settled[seed] = all(_settled(runs[cell]) for cell in cells)
    if not seeds:
        return None
    sure = {seed: cost for seed, cost in seeds.items() if settled[seed]}
    return Until(sure or seeds, bool(sure), len(columns[0]))


def _settled(record: RunRecord) -> bool:
    """True if a run has converged, or has ended without convergence."""
    section = record.experiment.federation
    return convergence(record.lines, section) is not None or finished(
        record.experiment, record.lines
    )


def table7(scale: Scale, runs: Runs) -> Answer:
    """Transmit power and operations until every width has converged."""
    told = paper.printed("table7")
    rows, claims = [], []
    for kind, (unit, key, what) in COSTS.items():
        for channel, alpha, printed in told[kind]:
            pair = [until(scale, runs, channel, alpha, m) for m in METHODS.values()]
            row = [unit, channel, f"{alpha:g}"]
            for theirs, ours in zip(printed, pair, strict=True):
                row += [f"{theirs:g}", "not run" if ours is None else ours.words(key)]
            rows.append(row)
            claims.append(_ratio(what, channel, alpha, printed, pair, key))
    headings = [
        "cost",
        "channel",
        "α",
        *(f"{who} {n}" for n in METHODS for who in ("paper", "ours")),
    ]
    notes = [
        "Vanilla FL-1.5x is two runs that stop on their own. Converged: every width's mean "
        f"accuracy over {scale.convergence_window} rounds above {scale.convergence_accuracy:.0%} "
        "and its deviation below 7.2%; costs are counted up to the first of these rounds (E10).",
        'A cost is shown if every seed converged; "never" means not in the rounds run. A ratio '
        "rests on the seeds in which both converged.",
        "The paper's averages over its six settings are 3.6 times for communication and 2.8 for "
        "computing; its text has them the other way round (E8).",
    ]
    return Answer([Table("table7", told["title"], headings, rows)], judged(claims), notes)


def _ratio(
    what: str,
    channel: str,
    alpha: float,
    printed: Sequence[float],
    pair: Sequence[Until | None],
    key: str,
) -> Claim:
    """How many times as much Vanilla FL-1.5x costs, over the seeds in which both converged."""
    slim, vanilla = (one.by_seed(key) if one and one.settled else {} for one in pair)
    contrast = paired(vanilla, slim, ratio=True)
    known = sum(len(one.seeds) for one in pair if one)
    reason = "" if contrast else "Not run." if not known else "No seed in which both converged."
    return Claim(
        f"{what} {channel} {alpha:g}",
        f"Vanilla FL-1.5x over SlimFL in {what} until convergence, {channel} channel, "
        f"alpha = {alpha:g}",
        "table VII",
        f"{printed[1] / printed[0]:.1f} times",
        contrast=contrast,
        reason=reason,
        effect=printed[1] / printed[0],
        effect_deviation=_log_deviation(pair, key),
        family=f"{what} {alpha:g}",
        unit="times",
        seeds=contrast.seeds if contrast else 0,
    )


def _log_deviation(pair: Sequence[Until | None], key: str) -> float:
    """Of the logarithm of a ratio of two unpaired runs."""
    logs = [[math.log(v) for v in one.by_seed(key).values()] if one else [] for one in pair]
    return math.hypot(*(stdev(each) for each in logs if len(each) > 1), 0.0)


_told = paper.printed("table7")
TABLE7 = Question("table7", _told["title"], _told["paper"], grid_cells, table7)
