"""The only rule by which a claim of the paper is judged.

1. A claim with numbers *agrees* if every number of ours lies within twice the combined standard
   deviation of the paper's number (or within half a unit of the last digit that the paper prints,
   if that is more).
2. Otherwise it *agrees in order only* if every pair that the paper tells apart (by more than its
   own combined deviation) has the same order here, by more than our standard error, and there is
   such a pair.
3. A claim that states only an order agrees if the order holds here by more than our standard error.
4. Where only some seeds reached what is measured, an order must hold with every seed.
5. Everything else *differs*. If no method reached what is measured, or a network is not better than
   guessing (`results/learned.py`), the claim is *undecided*; so is one that would agree, but that
   these runs cannot support (`Claim.doubt`).
6. Unfinished runs decide nothing. A verdict rests on the seeds with which all runs of the claim are
   finished, and says how many of the planned seeds these are; while there is none, the claim is
   *unfinished*, or *not run* if a number is missing.

An exhibit has the worst verdict of its claims.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from lab.reproduction.judging.paired import Difference, difference

RULE = (
    "A claim with numbers agrees when each of ours lies within twice the combined standard "
    "deviation of the paper's (or half a unit of its last printed digit). Otherwise it agrees in "
    "order only when every pair that the paper tells apart by more than its own combined deviation "
    "comes in the same order here, by more than our standard error. A claim of an order alone "
    "agrees when that order holds here by more than our standard error. Where only some seeds "
    "reached what is measured, an order must hold with every seed. Everything else differs; "
    "a claim is undecided where no method reached what is measured or a network has not learned "
    "yet (its accuracy is not above guessing and three standard errors), or where a claim would "
    "agree but these runs cannot support it. A verdict rests on the "
    "seeds with which all runs of the claim are finished, and says how many of the planned seeds "
    "these are; while there is none, the claim is unfinished. A table or figure has the worst "
    "verdict of its claims."
)


class Verdict(StrEnum):
    """The verdicts on a claim, from best to worst."""

    AGREES = "agrees"
    ORDER = "agrees in order only"
    DIFFERS = "differs"
    UNDECIDED = "undecided"
    NOT_RUN = "not run"
    UNFINISHED = "unfinished"
    NONE = "no claim"


@dataclass(frozen=True)
class Comparison:
    """One quantity: the paper's number and ours."""

    quantity: str
    ours: float | None
    """None before it is run; infinite if it was never reached."""
    deviation: float = 0.0
    """Standard deviation of ours over seeds."""
    seeds: int = 1
    paper: float | None = None
    """None if the paper states an order without numbers."""
    paper_deviation: float = 0.0
    digits: int = 0
    """Number of decimals that the paper prints."""
    unit: str = ""
    finished: bool = True
    """True if every run behind our number is finished."""
    seeds_planned: int | None = None
    """Number of seeds in the end; None if no more are planned."""
    by_seed: Mapping[int, float] = field(default_factory=dict)
    """Our number for each seed; empty if it is computed without runs."""
    learned: bool = True
    """True if every network behind our number is better than guessing."""

    @property
    def seeds_reached(self) -> int:
        """Number of seeds that reached it, if others did not; 0 if none or all did."""
        if self.ours is None or math.isfinite(self.ours):
            return 0
        return sum(math.isfinite(value) for value in self.by_seed.values())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean over our seeds."""
        return self.deviation / math.sqrt(max(1, self.seeds))

    @property
    def agrees(self) -> bool:
        """True if our number is the paper's within both deviations, or to its last digit."""
        assert self.ours is not None
        assert self.paper is not None
        last_digit: float = 0.5 * 10.0**-self.digits
        tolerance = max(2 * math.hypot(self.deviation, self.paper_deviation), last_digit)
        return abs(self.ours - self.paper) <= tolerance * (1 + 1e-9)


class Measure(StrEnum):
    """What a claim is about, for code that reads claims."""

    ACCURACY = "accuracy"
    FLUCTUATION = "fluctuation"
    COMPUTING = "computing"
    POWER = "transmit power"
    BITS = "bits on the air"
    COMPUTING_TO_CONVERGE = "computing until convergence"
    POWER_TO_CONVERGE = "transmit power until convergence"


@dataclass(frozen=True)
class Subject:
    """What a claim measures, and in which setting."""

    measure: Measure
    channel: str | None = None
    alpha: float | None = None


@dataclass(frozen=True)
class Claim:
    """One statement of the paper, with its numbers and ours."""

    text: str
    source: str
    comparisons: tuple[Comparison, ...]
    order: tuple[tuple[int, int], ...] = ()
    """Pairs (larger, smaller) of comparisons, for a claim that states only an order."""
    pairs: tuple[tuple[int, int], ...] = ()
    """Pairs whose difference is shown if the claim states no order."""
    about: Subject | None = None
    explanation: str = ""
    """Why it may not agree, if the exhibit knows."""
    doubt: str = ""
    """Why our numbers cannot support it, although they come out alike; it is then undecided."""

    @property
    def verdict(self) -> Verdict:
        """By the rule at the top of this file."""
        ours = [each.ours for each in self.comparisons]
        if any(value is None for value in ours):
            return Verdict.NOT_RUN
        if not all(each.finished for each in self.comparisons):
            return Verdict.UNFINISHED
        if not all(each.learned for each in self.comparisons):
            return Verdict.UNDECIDED
        if not any(math.isfinite(value) for value in ours if value is not None):
            return Verdict.UNDECIDED
        if self.order:
            holds = all(self._above(*pair) for pair in self.order)
            return self._supported if holds else Verdict.DIFFERS
        if all(each.agrees for each in self.comparisons):
            return self._supported
        pairs = list(self._told_apart())
        if pairs and all(self._above(*pair) for pair in pairs):
            return Verdict.ORDER
        return Verdict.DIFFERS

    @property
    def _supported(self) -> Verdict:
        return Verdict.UNDECIDED if self.doubt else Verdict.AGREES

    @property
    def seeds(self) -> int | None:
        """The smallest number of seeds behind one of its numbers; None if it needs no runs."""
        counts = [len(each.by_seed) for each in self.comparisons if each.by_seed]
        return min(counts, default=None)

    @property
    def seeds_planned(self) -> int | None:
        """Number of seeds in the end; None if no more are planned."""
        counts = [each.seeds_planned for each in self.comparisons if each.seeds_planned]
        return max(counts, default=None)

    @property
    def differences(self) -> list[Difference]:
        """Between the quantities that the claim compares, seed by seed."""
        found = []
        for i, j in self.order or self.pairs:
            first, second = self.comparisons[i], self.comparisons[j]
            held = second.by_seed
            if not held and second.ours is not None and not second.deviation:
                held = dict.fromkeys(first.by_seed, second.ours)  # a fixed number
            unit = "points" if first.unit == "%" else first.unit
            one = difference(first.quantity, second.quantity, first.by_seed, held, unit)
            found += [one] if one else []
        return found

    def _told_apart(self) -> Iterable[tuple[int, int]]:
        """The pairs (larger, smaller) that differ significantly in the paper."""
        for i, first in enumerate(self.comparisons):
            for j, second in enumerate(self.comparisons):
                assert first.paper is not None
                assert second.paper is not None
                blur = math.hypot(first.paper_deviation, second.paper_deviation)
                if first.paper - second.paper > blur:
                    yield i, j

    def _above(self, i: int, j: int) -> bool:
        first, second = self.comparisons[i], self.comparisons[j]
        assert first.ours is not None
        assert second.ours is not None
        if math.isinf(first.ours) or math.isinf(second.ours):
            # some seeds never got there, so there is no mean: the order must hold with every seed
            seeds = first.by_seed.keys() & second.by_seed.keys()
            pairs = [(first.by_seed[seed], second.by_seed[seed]) for seed in seeds]
            return all(one > other for one, other in pairs or [(first.ours, second.ours)])
        blur = math.hypot(first.standard_error, second.standard_error)
        rounding = 1e-9 * max(1.0, abs(second.ours))
        return first.ours - second.ours > blur + rounding


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """The worst of an exhibit's claims; undecided ones count only if all are undecided."""
    judged = [each for each in verdicts if each in (Verdict.AGREES, Verdict.ORDER, Verdict.DIFFERS)]
    order = list(Verdict)
    return max(judged or verdicts or [Verdict.NONE], key=order.index)
