"""Methods side by side in one setting: accuracy by seed, who is best, and what is a tie.

Two methods under one seed see the same data, devices, gains and first weights, so they are compared
by their paired differences. A method is tied with the best when Student's 95% interval of the
difference contains 0; with a single seed nothing can be told, and all are tied.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from slimfl.federation import RoundRecord
from slimfl.reproduction.judging.paired import Difference, difference
from slimfl.results import RunRecord
from slimfl.results.energy import round_energy_j
from slimfl.studies.scale import StudyScale


@dataclass(frozen=True)
class Standing:
    """One method's accuracy in one setting, in percent, by seed."""

    method: str
    by_seed: Mapping[int, float]

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return fmean(self.by_seed.values())

    @property
    def deviation(self) -> float:
        """Between seeds; 0 for one."""
        values = list(self.by_seed.values())
        return stdev(values) if len(values) > 1 else 0.0

    def __str__(self) -> str:
        return f"{self.mean:.1f}" + (f" ± {self.deviation:.1f}" if len(self.by_seed) > 1 else "")


@dataclass(frozen=True)
class Podium:
    """The best of some methods, and those that cannot be told from it."""

    best: Standing
    tied: list[Standing]
    runner_up: Standing | None
    lead: Difference | None
    """Over the runner-up."""

    @property
    def is_tie(self) -> bool:
        """Whether somebody else is as good, as far as the seeds can tell."""
        return bool(self.tied)

    def wins_or_ties(self, method: str) -> bool:
        """Whether a method is the best or tied with it."""
        return method in {self.best.method, *(each.method for each in self.tied)}


def podium(standings: Sequence[Standing]) -> Podium | None:
    """Who is best; None where nobody has been measured."""
    ranked = sorted((each for each in standings if each.by_seed), key=lambda s: -s.mean)
    if not ranked:
        return None
    best, *others = ranked
    gaps = [difference(best.method, o.method, best.by_seed, o.by_seed, "points") for o in others]
    tied = [other for other, gap in zip(others, gaps, strict=True) if not is_above_zero(gap)]
    return Podium(best, tied, others[0] if others else None, gaps[0] if gaps else None)


def is_above_zero(gap: Difference | None) -> bool:
    """Whether the whole interval of a difference lies above 0."""
    return gap is not None and gap.half_width is not None and gap.mean - gap.half_width > 0


def gap_words(gap: Difference | None) -> str:
    """A difference with its interval, in points."""
    if gap is None:
        return ""
    spread = "" if gap.half_width is None else f" ± {gap.half_width:.1f}"
    return f"{gap.mean:+.1f}{spread}"


def final_standing(
    method: str, records: Sequence[RunRecord], width: str, rounds: int | None = None
) -> Standing:
    """The accuracy at the end, or at a round, of runs that have come so far."""
    found = {}
    for record in records:
        end = record.experiment.rounds if rounds is None else rounds
        accuracy = accuracy_at(record, width, end)
        if len(record.lines) >= end and accuracy is not None:
            found[record.experiment.seed] = accuracy
    return Standing(method, found)


def accuracy_at(record: RunRecord, width: str, end: int) -> float | None:
    """The mean of the tests in the last part of the rounds up to `end`, in percent.

    Where that part has no test, the last test before it; None before the first test.
    """
    late = late_tests(record, width, end)
    return 100 * fmean(e.accuracy[width] for e in late) if late else None


def late_tests(record: RunRecord, width: str, end: int) -> list[RoundRecord]:
    """The tests of a width in the last part of the rounds up to `end`, or the last before it."""
    tested = [e for e in record.evaluated if width in e.accuracy and e.round <= end]
    return [e for e in tested if e.round > (1 - StudyScale.last_share) * end] or tested[-1:]


def best_width_standing(
    method: str, records: Sequence[RunRecord], rounds: int | None = None
) -> Standing:
    """The best model that a method gives: its more accurate width, in the mean over seeds."""
    widths = dict.fromkeys(w for r in records for e in r.evaluated for w in e.accuracy)
    each = [final_standing(method, records, width, rounds) for width in widths]
    return max((s for s in each if s.by_seed), key=lambda s: s.mean, default=Standing(method, {}))


def energy_j(record: RunRecord, rounds: int | None = None) -> float:
    """What all devices took for computing and sending, until a round."""
    return sum(round_energy_j(line) for line in record.lines[:rounds])


def standing_within(
    method: str, records: Sequence[RunRecord], width: str, budget_j: Mapping[int, float]
) -> Standing:
    """The accuracy in the last round that a seed's budget of energy pays for."""
    found = {}
    for record in records:
        seed = record.experiment.seed
        if seed not in budget_j:
            continue
        spent = itertools.accumulate(round_energy_j(line) for line in record.lines)
        paid = sum(used <= budget_j[seed] * (1 + 1e-9) for used in spent)
        accuracy = accuracy_at(record, width, paid)
        if accuracy is not None:
            found[seed] = accuracy
    return Standing(method, found)
