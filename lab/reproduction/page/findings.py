"""When to use SlimFL and when not, in sentences that follow from the results.

Every contest compares SlimFL with a Vanilla FL in some settings. It is ahead or behind if their
means differ by more than their combined standard deviation; otherwise there is a tie. A setting is
unknown if neither network has learned, if neither has converged or one only with some seeds, if a
single seed says nothing about the spread, or if nothing was run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from lab.reproduction.exhibits import table3_runs as grid
from lab.reproduction.judging.verdict import Measure
from lab.reproduction.page import printed
from slimfl.results.ties import is_tie

RULE = (
    "Ahead and behind mean further apart than the combined standard deviation of both; anything "
    "less is called a tie. (A verdict on a claim of the paper uses the standard error, which is "
    "smaller.)"
)

#: The paper's section V, independent of runs.
THEORY = (
    "Over an extremely good channel nearly every upload arrives whole, so superposition gains "
    "nothing, and Vanilla FL-1.0x is the simpler choice.",
    "Over an extremely poor channel the right half hardly ever arrives; the bound of theorem 1 "
    "grows with 1/p2, and the power spent on it is missing for the left half. Train only the "
    "narrow network, with Vanilla FL-0.5x.",
)

#: A network has learned at twice the accuracy of guessing among ten classes.
LEARNED_PERCENT = 20.0

Comparison = Mapping[str, Any]
_DATA = {0.1: "very uneven data", 1.0: "uneven data", 10.0: "nearly even data"}
_EVERY = "Vanilla FL-1.5x"
#: The exhibit behind each finding.
_SOURCES = {
    "table3": "accuracy and how much it fluctuates (table III)",
    "table5": "the cost of a round (table V)",
    "table6": "what gets lost on the air (table VI)",
    "table7": "the cost until convergence (table VII)",
}


class Outcome(Enum):
    """The result of SlimFL in one setting."""

    AHEAD = "ahead"
    TIE = "a tie"
    BEHIND = "behind"
    UNLEARNED = "neither has learned"
    NEVER = "neither converged"
    SOME_SEEDS = "converged only with some seeds"
    ONE_SEED = "one seed only"
    UNFINISHED = "unfinished"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Finding:
    """A sentence, and the settings in which it is true."""

    text: str
    cases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """The numbers of SlimFL and of its rival in one setting."""

    where: str
    own: Comparison
    other: Comparison
    larger_is_better: bool = True
    learned: bool = True

    @property
    def outcome(self) -> Outcome:
        """By the rule at the top of this file."""
        both = (self.own, self.other)
        if any(each["ours"] is None and each["reached"] for each in both):
            return Outcome.NOT_RUN
        if not all(each.get("finished", True) for each in both):
            return Outcome.UNFINISHED
        if not any(each["reached"] for each in both):
            return Outcome.NEVER
        if not self.learned:
            return Outcome.UNLEARNED
        if any(each["unit"] in printed.TRAINED and each["seeds"] == 1 for each in both):
            return Outcome.ONE_SEED
        if any(each.get("seeds_reached") for each in both):
            return Outcome.SOME_SEEDS
        if not all(each["reached"] for each in both):
            # only a cost can be unreached, and then the other method is better
            return Outcome.AHEAD if self.own["reached"] else Outcome.BEHIND
        gap = self.own["ours"] - self.other["ours"]
        deviations = self.own["ours_deviation"], self.other["ours_deviation"]
        if is_tie(self.own["ours"], self.other["ours"], *deviations):
            return Outcome.TIE
        return Outcome.AHEAD if (gap > 0) == self.larger_is_better else Outcome.BEHIND

    def __str__(self) -> str:
        if self.outcome in (Outcome.NOT_RUN, Outcome.NEVER, Outcome.UNLEARNED):
            return self.where
        own, other = printed.ours(self.own), printed.ours(self.other)
        if self.other["reached"]:
            own = own.removesuffix(f" {self.own['unit']}")
        return f"{self.where}: {own} against {other}{self._distance()}"

    def _distance(self) -> str:
        """The difference in points, or as a ratio if that is meaningful."""
        own, other = self.own["ours"], self.other["ours"]
        if self.outcome not in (Outcome.AHEAD, Outcome.BEHIND) or own is None or other is None:
            return ""
        if self.own["unit"] == "%":
            return f" ({abs(own - other):.1f} points)"
        ratio = max(own, other) / min(own, other) if min(own, other) > 0 else 1.0
        if self.larger_is_better or ratio < 1.1:
            return ""
        return f" ({ratio:.1f} times {'less' if own < other else 'more'})"


@dataclass(frozen=True)
class Contest:
    """One question in several settings, and the sentences for its answers."""

    subject: str
    cases: list[Case]
    ahead: str
    behind: str
    tie: str

    def finding(self, outcome: Outcome) -> list[Finding]:
        """The sentence on the settings with this outcome; none if there is no such setting."""
        cases = tuple(str(case) for case in self.cases if case.outcome is outcome)
        if not cases:
            return []
        words = {
            Outcome.AHEAD: self.ahead,
            Outcome.BEHIND: self.behind,
            Outcome.TIE: self.tie,
            Outcome.UNFINISHED: f"{self.subject}: the runs are unfinished, so this may change",
            Outcome.NOT_RUN: f"{self.subject}: not run",
            Outcome.NEVER: f"{self.subject}: neither converged under every seed within the rounds "
            "run",
            Outcome.SOME_SEEDS: f"{self.subject}: one converged only with some seeds within the "
            "rounds run",
            Outcome.ONE_SEED: f"{self.subject}: run under one seed, which shows no spread",
            Outcome.UNLEARNED: f"{self.subject}: neither network had learned (below "
            f"{LEARNED_PERCENT:.0f} % accuracy, twice that of guessing)",
        }[outcome]
        everywhere = len(cases) == len(self.cases) > 1
        if everywhere and outcome in (Outcome.NOT_RUN, Outcome.NEVER, Outcome.UNLEARNED):
            return [Finding(f"{words}, in any of {len(cases)} settings")]
        return [Finding(words, cases)]

    def tally(self) -> str:
        """The number of settings per outcome."""
        counts = {each: sum(c.outcome is each for c in self.cases) for each in Outcome}
        said = ", ".join(f"{each.value} in {n}" for each, n in counts.items() if n)
        return f"{self.subject}, {_count(len(self.cases), 'setting')}: {said}."


@dataclass(frozen=True)
class Findings:
    """Everything that the results say about the use of SlimFL."""

    good_for: list[Finding] = field(default_factory=list)
    not_for: list[Finding] = field(default_factory=list)
    ties: list[Finding] = field(default_factory=list)
    unknown: list[Finding] = field(default_factory=list)
    tallies: list[str] = field(default_factory=list)

    def add(self, contest: Contest) -> None:
        """Sort the settings of a contest by their outcome."""
        self.good_for.extend(contest.finding(Outcome.AHEAD))
        self.not_for.extend(contest.finding(Outcome.BEHIND))
        self.ties.extend(contest.finding(Outcome.TIE))
        for outcome in (
            Outcome.ONE_SEED,
            Outcome.UNLEARNED,
            Outcome.NEVER,
            Outcome.SOME_SEEDS,
            Outcome.UNFINISHED,
            Outcome.NOT_RUN,
        ):
            self.unknown.extend(contest.finding(outcome))


def findings(document: Mapping[str, Any]) -> Findings:
    """The findings from the exhibits of a reproduction."""
    exhibits = {each["name"]: each for each in document["exhibits"]}
    found = Findings()
    accuracies = _accuracies(exhibits)
    for contest in accuracies:
        found.add(contest)
        found.tallies.append(contest.tally())
    for contest in (
        *_fluctuations(exhibits, accuracies),
        *_round_costs(exhibits),
        *_losses(exhibits),
        *_costs_until_convergence(exhibits),
    ):
        found.add(contest)
    absent = [words for name, words in _SOURCES.items() if name not in exhibits]
    if absent:
        found.unknown.append(Finding("Not part of this page", tuple(absent)))
    return found


def _accuracies(exhibits: Mapping[str, Any]) -> list[Contest]:
    columns = [
        (claim["about"], _by_quantity(claim))
        for claim in _claims(exhibits, "table3", Measure.ACCURACY)
    ]
    contests = []
    for width in ("1.0x", "0.5x"):
        own, other = _rivals(width)
        cases = [
            Case(_where(about), row[own], row[other], learned=_learned(row[own], row[other]))
            for about, row in columns
            if own in row and other in row
        ]
        if cases:
            contests.append(
                Contest(
                    f"Accuracy of {own} against {other}",
                    cases,
                    ahead=f"More accurate: {own} is ahead of {other}",
                    behind=f"Less accurate: {own} is behind {other}",
                    tie=f"As accurate: {own} ties with {other}",
                )
            )
    return contests


def _fluctuations(exhibits: Mapping[str, Any], accuracies: list[Contest]) -> list[Contest]:
    """Contests on fluctuation, only in settings where a network has learned."""
    learned = {
        (contest.subject, case.where): case.learned
        for contest in accuracies
        for case in contest.cases
    }
    contests = []
    for width in ("1.0x", "0.5x"):
        own, other = _rivals(width)
        cases: dict[str, Case] = {}
        for claim in (
            *_claims(exhibits, "table3", Measure.FLUCTUATION),
            *_claims(exhibits, "fig7", Measure.FLUCTUATION),
        ):
            row, where = _by_quantity(claim), _where(claim["about"])
            if not {own, other} <= set(row):
                continue
            known = learned.get((f"Accuracy of {own} against {other}", where))
            if known is not None and where not in cases:
                cases[where] = Case(where, row[own], row[other], False, known)
        if cases:
            contests.append(
                Contest(
                    f"Fluctuation of {own} against {other}",
                    list(cases.values()),
                    ahead=f"Steadier: at the end {own} moves less from round to round than {other}",
                    behind=f"Less steady: at the end {own} moves more from round to round than "
                    f"{other}",
                    tie=f"As steady: at the end {own} and {other} move alike from round to round",
                )
            )
    return contests


def _round_costs(exhibits: Mapping[str, Any]) -> list[Contest]:
    contests = []
    computing: Comparison | None = None
    for thing in (Measure.POWER, Measure.COMPUTING):
        for claim in _claims(exhibits, "table5", thing):
            row = _by_quantity(claim)
            own, other = row["SlimFL"], row[_EVERY]
            # the paper adds up powers; the energy also depends on how long each run sends
            counted = " (as the paper counts, without airtime)" if thing is Measure.POWER else ""
            if thing is Measure.COMPUTING:
                computing = own
            contests.append(
                Contest(
                    f"{thing.capitalize()} per round",
                    [Case("per round", own, other, larger_is_better=False)],
                    ahead=f"Both widths from one run: less {thing} than {_EVERY}, the two Vanilla "
                    f"FL runs that it replaces{counted}",
                    behind=f"More {thing} per round than {_EVERY}, the two Vanilla FL runs that "
                    f"it replaces{counted}",
                    tie=f"As much {thing} per round as {_EVERY}, the two Vanilla FL runs that it "
                    f"replaces{counted}",
                )
            )
    for claim in _claims(exhibits, "table4", Measure.COMPUTING):
        if computing:
            alone = {**_by_quantity(claim)["1.0x"], "unit": computing["unit"]}
            contests.append(
                Contest(
                    "Computing per round against the full width alone",
                    [Case("per round", computing, alone, larger_is_better=False)],
                    ahead="Less computing than Vanilla FL-1.0x alone",
                    behind="If you need only one width: SlimFL trains both, which takes more "
                    "computing than the full width alone",
                    tie="As much computing as Vanilla FL-1.0x alone",
                )
            )
    return contests


def _losses(exhibits: Mapping[str, Any]) -> list[Contest]:
    dropped, whole = [], []
    for claim in _claims(exhibits, "table6", Measure.BITS):
        row, where = _by_quantity(claim), f"{claim['about']['channel']} channel"
        dropped.append(Case(where, row["slimfl drop"], row["vanilla-1.0x drop"], False))
        whole.append(Case(where, row["slimfl 1.0x"], row["vanilla-1.0x"]))
    other = "Vanilla FL-1.0x"
    contests = [
        Contest(
            f"Bits lost against {other}",
            dropped,
            ahead=f"Less is lost on the air than with {other}",
            behind=f"More is lost on the air than with {other}",
            tie=f"As much is lost on the air as with {other}",
        ),
        Contest(
            f"Whole models against {other}",
            whole,
            ahead=f"More whole models arrive than with {other}",
            behind=f"Fewer whole models arrive than with {other}: half models, which {other} does "
            "not deliver, take their place",
            tie=f"As many whole models arrive as with {other}",
        ),
    ]
    return [contest for contest in contests if contest.cases]


def _costs_until_convergence(exhibits: Mapping[str, Any]) -> list[Contest]:
    contests = []
    for measure, what, thing in (
        (Measure.POWER_TO_CONVERGE, "Communication", "transmit power"),
        (Measure.COMPUTING_TO_CONVERGE, "Computing", "computing"),
    ):
        cases = []
        for claim in _claims(exhibits, "table7", measure):
            row = _by_quantity(claim)
            cases.append(Case(_where(claim["about"]), row["SlimFL"], row[_EVERY], False))
        if cases:
            contests.append(
                Contest(
                    f"{what} until convergence",
                    cases,
                    ahead=f"Less {thing} until both widths have converged than {_EVERY}",
                    behind=f"More {thing} until both widths have converged than {_EVERY}",
                    tie=f"As much {thing} until both widths have converged as {_EVERY}",
                )
            )
    return contests


def _claims(
    exhibits: Mapping[str, Any], name: str, measure: Measure
) -> Iterable[Mapping[str, Any]]:
    """The claims of an exhibit that are about one measure."""
    claims = exhibits[name]["claims"] if name in exhibits else []
    return [each for each in claims if each.get("about", {}).get("measure") == measure]


def _by_quantity(claim: Mapping[str, Any]) -> dict[str, Comparison]:
    return {each["quantity"]: each for each in claim["comparisons"]}


def _where(about: Mapping[str, Any]) -> str:
    channel, alpha = about["channel"], about["alpha"]
    data = f", {_DATA[alpha]}" if alpha in _DATA else ""
    return f"{channel} channel{data} (α = {alpha:g})"


def _rivals(width: str) -> tuple[str, str]:
    return grid.NAMES["slimfl", width], grid.NAMES[f"vanilla-{width}", width]


def _learned(*both: Comparison) -> bool:
    return any(each["ours"] is not None and each["ours"] >= LEARNED_PERCENT for each in both)


def _count(number: int, thing: str) -> str:
    return f"1 {thing}" if number == 1 else f"{number} {thing}s"
