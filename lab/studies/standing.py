"""Methods side by side in one setting: accuracy by seed, the highest mean, and who is not below it.

Two methods under one seed see the same data, devices, gains and first weights, so they are compared
by their paired differences. A method is not told apart from another when Student's 95% interval of
the difference contains 0; with a single seed there is no interval. That says how little the seeds
can tell, not that the methods are alike: beside it stands the largest difference in the interval.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from lab.reproduction.judging.paired import Difference, difference
from lab.studies.scale import StudyScale
from slimfl.results import RunRecord
from slimfl.results.energy import round_energy_j, sending_energy_j
from slimfl.round import RoundRecord


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
    """The highest mean of some methods, and those that the seeds cannot tell from it."""

    best: Standing
    not_told_apart: list[tuple[Standing, Difference | None]]
    """With the lead of the highest mean."""
    runner_up: Standing | None
    lead: Difference | None
    """Over the runner-up."""

    @property
    def told_apart(self) -> bool:
        """Whether the interval of every other method's distance leaves out 0."""
        return not self.not_told_apart

    @property
    def words(self) -> str:
        """Who is not told apart from the highest mean, each with its bound; empty for nobody."""
        listed = [f"{s.method} ({bound_words(gap)})" for s, gap in self.not_told_apart]
        return f"not told apart from it: {', '.join(listed)}" if listed else ""


def podium(standings: Sequence[Standing]) -> Podium | None:
    """Who is best; None where nobody has been measured."""
    ranked = sorted((each for each in standings if each.by_seed), key=lambda s: -s.mean)
    if not ranked:
        return None
    best, *others = ranked
    gaps = [difference(best.method, o.method, best.by_seed, o.by_seed, "points") for o in others]
    close = [(o, gap) for o, gap in zip(others, gaps, strict=True) if not is_above_zero(gap)]
    return Podium(best, close, others[0] if others else None, gaps[0] if gaps else None)


def is_above_zero(gap: Difference | None) -> bool:
    """Whether the whole interval of a difference lies above 0."""
    return gap is not None and gap.half_width is not None and gap.mean - gap.half_width > 0


def bound(gap: Difference | None) -> float | None:
    """The largest difference, in either direction, that the interval leaves possible."""
    if gap is None or gap.half_width is None:
        return None
    return abs(gap.mean) + gap.half_width


def bound_words(gap: Difference | None) -> str:
    """How far apart two methods can be, in points.

    >>> bound_words(Difference("a", "b", "points", 1.0, 3, 2.5)), bound_words(None)
    ('|difference| < 3.5 points', 'no interval')
    """
    limit = bound(gap)
    # rounded up, so that what is printed is a bound as well
    return "no interval" if limit is None else f"|difference| < {math.ceil(10 * limit) / 10} points"


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


def sending_j(records: Sequence[RunRecord]) -> float:
    """What all devices took for sending, in the mean over runs."""
    return fmean(sending_energy_j(record.lines) for record in records)


def airtime_ms(records: Sequence[RunRecord]) -> float:
    """The airtime of one upload, in milliseconds: what a method takes of the radio."""
    uploads = sum(len(line.devices) for record in records for line in record.lines)
    return 1000 * sum(line.airtime_s for r in records for line in r.lines) / max(uploads, 1)


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
