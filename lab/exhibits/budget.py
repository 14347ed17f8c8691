"""The paper's own comparison: SlimFL, and the two Vanilla FL runs that it replaces, at one budget.

The paper compares SlimFL with Vanilla FL-1.5x, two runs for two widths, which take twice its
transmit power and bandwidth. SlimFL is read after all its rounds; both Vanilla FL runs are stopped
in the last round that they can together pay with what SlimFL has spent. Three accountings say what
a round of them costs: the airtime and energy of the archived runs (equal rates, true sizes), the
same if SlimFL's rates were by size, and the paper's, in which every run has the same power.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from lab import paper
from lab.drawing import Costed, cost_figure
from lab.exhibits.accuracies import grid_arm, grid_cells
from lab.exhibits.arms import CHANNELS
from lab.judge import Claim, gap_words, interval_words, judged
from lab.question import Answer, Picture, Question, Runs, Table, complete
from lab.scale import ALPHAS, Scale
from slimfl.results.records import RunRecord
from slimfl.results.rules import sending_energy_j
from slimfl.results.statistics import EQUAL_WITHIN, Paired, paired
from slimfl.round import RoundRecord

WIDTHS = ("0.5x", "1.0x")
Cost = Callable[[RoundRecord], float]
#: The setting of the picture: SlimFL's lead is largest there, and its noise.
SHOWN = ("poor", 1.0)


def transmit_j(line: RoundRecord) -> float:
    """What all devices sent with in a round."""
    return sending_energy_j([line])


@dataclass(frozen=True)
class Accounting:
    """What a round costs, and the part of SlimFL's cost that counts."""

    name: str
    words: str
    cost: Cost
    share: Callable[[RunRecord, RunRecord], float]
    """Of a run of SlimFL and one of Vanilla FL-1.0x."""


def by_size_share(slim: RunRecord, full: RunRecord) -> float:
    """With rates by size, both segments fill the airtime of one message of the whole model."""
    return sum(map(transmit_j, full.lines)) / sum(map(transmit_j, slim.lines))


ACCOUNTINGS = (
    Accounting("as archived", "equal rates, true sizes", transmit_j, lambda slim, full: 1.0),
    Accounting("by-size", "rates by size, true sizes", transmit_j, by_size_share),
    Accounting("the paper's", "every run has the same power", lambda line: line.paper_power_mw,
               lambda slim, full: 1.0),
)  # fmt: skip
EQUAL_ROUNDS = "equal rounds"
PRIMARY = "Mean lead over both widths and all three data distributions on the poor channel"


@dataclass(frozen=True)
class Seed:
    """SlimFL and both Vanilla FL runs with one seed."""

    slim: RunRecord
    vanilla: tuple[RunRecord, RunRecord]

    def lead(self, width: str, share: float, rounds: int) -> float:
        """SlimFL after all rounds over Vanilla FL after some, both over the last part of theirs."""
        other = self.vanilla[WIDTHS.index(width)]
        return reached(self.slim, width, share) - reached(other, width, share, rounds)

    def affordable(self, accounting: Accounting) -> int:
        """The number of rounds that both Vanilla FL runs can pay with SlimFL's budget."""
        whole = sum(map(accounting.cost, self.slim.lines))
        budget = accounting.share(self.slim, self.vanilla[1]) * whole * (1 + EQUAL_WITHIN)
        together = (
            sum(map(accounting.cost, lines))
            for lines in zip(*(run.lines for run in self.vanilla), strict=True)
        )
        return sum(total <= budget for total in itertools.accumulate(together))

    def times(self, accounting: Accounting) -> float:
        """How many times SlimFL's budget both Vanilla FL runs spend in equal rounds."""
        both = sum(sum(map(accounting.cost, run.lines)) for run in self.vanilla)
        slim = sum(map(accounting.cost, self.slim.lines))
        return both / slim / accounting.share(self.slim, self.vanilla[1])


def reached(run: RunRecord, width: str, share: float, rounds: int = 0) -> float:
    """The mean accuracy in percent over the last part of some rounds, at least the last test."""
    end = rounds or len(run.lines)
    count = max(1, round(share * end))
    tests = [line.accuracy[width] for line in run.evaluated if end - count < line.round <= end]
    before = [line.accuracy[width] for line in run.evaluated if line.round <= end][-1:]
    return 100 * fmean(tests or before or [math.nan])


def seeds_of(scale: Scale, runs: Runs, channel: str, alpha: float) -> dict[int, Seed]:
    """The seeds of a setting in which all three runs are finished."""
    by_method = {
        method: {r.experiment.seed: r for r in
                 complete(runs, grid_arm(channel, alpha, method).cells(scale))}
        for method in ("slimfl", "vanilla-0.5x", "vanilla-1.0x")
    }  # fmt: skip
    slim, half, full = by_method.values()
    return {
        seed: Seed(slim[seed], (half[seed], full[seed]))
        for seed in sorted(slim.keys() & half.keys() & full.keys())
    }


def answer(scale: Scale, runs: Runs) -> Answer:
    """The leads by setting, width and accounting; the mean lead as the one primary outcome."""
    rows, claims, told, times = [], [], paper.printed("budget"), {}
    primary: dict[str, dict[int, list[float]]] = {each.name: {} for each in ACCOUNTINGS}
    data: dict[str, Any] = {}
    ahead: dict[str, list[bool]] = {each.name: [] for each in ACCOUNTINGS}
    for channel in CHANNELS:
        for alpha in ALPHAS:
            seeds = seeds_of(scale, runs, channel, alpha)
            for width in WIDTHS:
                where = f"{channel}, α = {alpha:g}"
                if not seeds:
                    rows.append([where, width, "0", *["not run"] * (1 + len(ACCOUNTINGS))])
                    continue
                rounds = {EQUAL_ROUNDS: {s: len(each.slim.lines) for s, each in seeds.items()}}
                for accounting in ACCOUNTINGS:
                    rounds[accounting.name] = {
                        s: max(1, each.affordable(accounting)) for s, each in seeds.items()
                    }
                    times[accounting.name] = fmean(e.times(accounting) for e in seeds.values())
                leads = {
                    name: {s: seeds[s].lead(width, scale.last_share, n) for s, n in some.items()}
                    for name, some in rounds.items()
                }
                data[f"{where}, {width}"] = {"leads": leads, "rounds": rounds}
                rows.append([where, width, str(len(seeds)), *(
                    gap_words(paired(by_seed, dict.fromkeys(by_seed, 0.0)))
                    for by_seed in leads.values())])  # fmt: skip
                for accounting in ACCOUNTINGS:
                    by_seed = leads[accounting.name]
                    ahead[accounting.name].append(fmean(by_seed.values()) > 0)
                    if channel == "poor":
                        for seed, lead in by_seed.items():
                            primary[accounting.name].setdefault(seed, []).append(lead)
                claims.append(_claim(where, width, leads[ACCOUNTINGS[-1].name], scale))
    headings = ["channel and data", "width", "seeds", EQUAL_ROUNDS, *(
        f"{each.name}: {each.words}"
        + (f", {times[each.name]:.2f} times" if each.name in times else "")
        for each in ACCOUNTINGS)]  # fmt: skip
    means = _means(primary)
    sentences = [_counts(ahead)] if any(ahead.values()) else []
    if means:
        words = "; ".join(f"{name} {interval_words(one)}" for name, one in means.items())
        sentences.append(f"{PRIMARY}, by accounting: {words}.")
    sentences += [
        "Points by which SlimFL is ahead of the Vanilla FL of the same width; ± is Student's 95% "
        "interval over paired seeds; one seed has none. A final accuracy is the mean over the last "
        f"{scale.last_share:.1%} of the rounds that are read. The times are what both Vanilla FL "
        "runs take of SlimFL's transmit energy after equal rounds; airtime and bits have the same "
        "ratio. Computing per round is equal, so SlimFL computes more rounds.",
        "The by-size column reads the archived runs, whose rates are equal; with rates by size "
        "SlimFL delivers more (0.841 and 0.655 instead of 0.810 and 0.632), so it is cautious.",
        "Accuracy still rises at the end of these runs, so that a lead in rounds is a lead in "
        "accuracy; it shrinks as both converge. How much of it one nested message without "
        "superposition would share was not run on this link.",
    ]
    if times:
        ratios = "; ".join(f"{name}: {value:.2f} times" for name, value in times.items())
        data["headline"] = {
            "C1": f"transmit energy, bits and airtime, by accounting: {ratios}; computing equal",
            "C2": " ".join(sentences[:2]) or "not run",
        }
    picture = Picture("budget", _caption(), figure(scale, runs))
    table = Table("budget", told["title"], headings, rows)
    first = [_primary(means[ACCOUNTINGS[-1].name])] if means else []
    return Answer([table], [*judged(first), *judged(claims)], sentences, [picture], data)


def _claim(where: str, width: str, leads: Mapping[int, float], scale: Scale) -> Claim:
    return Claim(
        f"budget {where} {width}",
        f"SlimFL-{width} is ahead of Vanilla FL at the paper's budget, {where}",
        "abstract, conclusion",
        "more accurate",
        contrast=paired(leads, dict.fromkeys(leads, 0.0)),
        family=f"{where.partition('=')[2].strip()} {width}",
        seeds=len(leads),
        reason="A quick look, in which nothing has converged." if scale.quick_look else "",
    )


def _counts(ahead: Mapping[str, Sequence[bool]]) -> str:
    told = "; ".join(f"{name}: {sum(some)} of {len(some)}" for name, some in ahead.items())
    return f"Means in which SlimFL is ahead, by accounting: {told}."


def _means(leads: Mapping[str, Mapping[int, Sequence[float]]]) -> dict[str, Paired]:
    """The mean lead by seed, for every accounting, over the seeds that have all settings."""
    found = {}
    for name, by_seed in leads.items():
        most = max(map(len, by_seed.values()), default=0)
        means = {seed: fmean(some) for seed, some in by_seed.items() if len(some) == most}
        contrast = paired(means, dict.fromkeys(means, 0.0))
        if contrast is not None:
            found[name] = contrast
    return found


def _primary(contrast: Paired) -> Claim:
    """The one primary outcome; the settings are secondary."""
    return Claim(
        "mean lead", f"{PRIMARY}, the paper's accounting", "abstract, conclusion", "more accurate",
        contrast=contrast, seeds=contrast.seeds,
    )  # fmt: skip


def _caption() -> str:
    channel, alpha = SHOWN
    return (
        f"Accuracy over what the devices have sent with, {channel} channel, α = {alpha:g}: SlimFL, "
        "which gives both widths, and the two Vanilla FL runs together (Vanilla FL-1.5x). Means "
        "over seeds, smoothed over five tests; bands from the lowest to the highest seed."
    )


def figure(scale: Scale, runs: Runs) -> Any:
    """Accuracy over transmit joules, bits and airtime for both widths."""
    seeds = list(seeds_of(scale, runs, *SHOWN).values())
    axes: dict[str, Cost] = {
        "transmit energy, J": transmit_j,
        "bits sent, MB": lambda line: sum(line.bits_sent) / 8e6,
        "airtime, s": lambda line: line.airtime_s,
    }
    panels = {}
    for axis, cost in axes.items():
        curves = []
        for width in WIDTHS:
            slim = [_over(each.slim, [each.slim], width, cost) for each in seeds]
            both = [_over(each.vanilla[WIDTHS.index(width)], each.vanilla, width, cost)
                    for each in seeds]  # fmt: skip
            curves += [Costed(f"SlimFL-{width}", width, slim),
                       Costed(f"Vanilla FL-1.5x, {width}", width, both)]  # fmt: skip
        panels[axis] = curves
    return cost_figure(panels)


def _over(
    run: RunRecord, paying: Sequence[RunRecord], width: str, cost: Cost
) -> list[tuple[float, float]]:
    """(spent, accuracy in percent) at every test."""
    lines = zip(*(each.lines for each in paying), strict=True)
    spent = list(itertools.accumulate(sum(map(cost, some)) for some in lines))
    return [(spent[line.round - 1], 100 * line.accuracy[width]) for line in run.evaluated]


_told = paper.printed("budget")
BUDGET = Question("budget", _told["title"], _told["paper"], grid_cells, answer)
