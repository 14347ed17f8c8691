"""How methods are compared: paired by seed, with intervals, and never by a word alone.

Two methods under one seed see the same data, devices, gains and first weights, so the difference
for each seed is one sample. Everything that compares runs takes its numbers from here.

* `Paired`: the mean difference with Student's interval and, because few seeds say little about
  normality, the exact sign-flip test beside it.
* `pooled_deviation`: one deviation for several settings, with more degrees of freedom.
* `holm`: p values of several contrasts of one question, adjusted so that the chance of any false
  one stays below the level.
* `equivalence_margin`: how far apart two methods can still be; the word for "no difference seen".
* `fluctuation`: how much a curve jumps from test to test, whatever its trend.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from scipy.special import stdtr, stdtrit  # scipy.stats would take a second to import

CONFIDENCE = 0.95
#: With fewer seeds, a result is called preliminary.
ENOUGH_SEEDS = 5
#: Budgets that agree within this are called equal: widths have whole numbers of parameters.
EQUAL_WITHIN = 0.002
#: The exact sign-flip test enumerates 2 to this power sums at most.
MOST_FLIPS = 20


@dataclass(frozen=True)
class Paired:
    """Differences by seed, or the logarithms of ratios by seed."""

    by_seed: Mapping[int, float]
    is_ratio: bool = False
    deviation: float | None = None
    """A deviation pooled over several settings; that of these samples when absent."""
    degrees: float | None = None
    """Its degrees of freedom."""

    @property
    def seeds(self) -> int:
        """Number of seeds that both have."""
        return len(self.by_seed)

    @property
    def preliminary(self) -> bool:
        """Whether there are too few seeds for more than a preliminary result."""
        return self.seeds < ENOUGH_SEEDS

    @property
    def mean(self) -> float:
        """The mean difference, or the geometric mean of the ratios."""
        return self._scale(fmean(self.by_seed.values()))

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
        """Student's interval of the mean; None with one seed and no pooled deviation."""
        error = self._error
        if error is None:
            return None
        deviation, degrees = error
        middle, half = fmean(self.by_seed.values()), student_t(degrees, confidence) * deviation
        return self._scale(middle - half), self._scale(middle + half)

    @property
    def told_apart(self) -> bool:
        """Whether the interval excludes "no difference": 0, or a ratio of 1."""
        interval, none = self.interval(), self._scale(0.0)
        return interval is not None and not interval[0] <= none <= interval[1]

    @property
    def p_student(self) -> float | None:
        """Two-sided p value of Student's test; None without an error of the mean."""
        error = self._error
        if error is None:
            return None
        deviation, degrees = error
        middle = abs(fmean(self.by_seed.values()))
        if deviation == 0:
            return 1.0 if middle == 0 else 0.0
        return float(2 * stdtr(degrees, -middle / deviation))

    @property
    def p_sign_flip(self) -> float | None:
        """Two-sided p value of the exact sign-flip test; None with too many seeds."""
        samples = list(self.by_seed.values())
        if not samples or len(samples) > MOST_FLIPS:
            return None
        observed = abs(math.fsum(samples)) * (1 - 1e-12)
        signs = itertools.product((1, -1), repeat=len(samples))
        sums = (abs(math.fsum(s * x for s, x in zip(flip, samples, strict=True))) for flip in signs)
        return float(sum(each >= observed for each in sums) / 2 ** len(samples))

    @property
    def ahead(self) -> int:
        """The number of seeds in which the first is larger."""
        return sum(value > 0 for value in self.by_seed.values())

    @property
    def in_points(self) -> str:
        """A difference in points with its interval and the number of seeds.

        >>> paired({0: 71.0, 1: 73.0, 2: 72.0}, {0: 70.0, 1: 71.0, 2: 69.0}).in_points
        '+2.0 [-0.5, +4.5] points, 3 seeds, preliminary'
        >>> paired({0: 71.0}, {0: 70.0}).in_points
        '+1.0 points (one seed)'
        """
        interval = self.interval()
        if interval is None:
            return f"{self.mean:+.1f} points (one seed)"
        few = ", preliminary" if self.preliminary else ""
        low, high = interval
        return f"{self.mean:+.1f} [{low:+.1f}, {high:+.1f}] points, {self.seeds} seeds{few}"

    @property
    def _error(self) -> tuple[float, float] | None:
        """The standard error of the mean and its degrees of freedom."""
        if self.deviation is not None and self.degrees is not None:
            return self.deviation / math.sqrt(self.seeds), self.degrees
        if self.seeds < 2:
            return None
        return stdev(self.by_seed.values()) / math.sqrt(self.seeds), self.seeds - 1

    def _scale(self, value: float) -> float:
        return math.exp(value) if self.is_ratio else value


def paired(
    first: Mapping[int, float], second: Mapping[int, float], *, ratio: bool = False
) -> Paired | None:
    """One quantity against another by seed; None if no seed has both.

    Args:
        first: A value per seed.
        second: The same of the other method.
        ratio: Compare logarithms, for quantities whose ratio matters.

    >>> lead = paired({100: 71.0, 101: 73.0, 102: 72.0}, {100: 70.0, 101: 71.0, 102: 69.0})
    >>> round(lead.mean, 2), [round(end, 2) for end in lead.interval()], lead.ahead
    (2.0, [-0.48, 4.48], 3)
    """
    seeds = sorted(first.keys() & second.keys())
    if ratio:
        found = {seed: math.log(first[seed] / second[seed]) for seed in seeds}
    else:
        found = {seed: first[seed] - second[seed] for seed in seeds}
    if not found or not all(map(math.isfinite, found.values())):
        return None
    return Paired(found, ratio)


def with_pooled_deviation(contrasts: Sequence[Paired]) -> list[Paired]:
    """The same contrasts, each with the deviation pooled over all of them."""
    pooled = pooled_deviation([list(each.by_seed.values()) for each in contrasts])
    if pooled is None:
        return list(contrasts)
    return [Paired(each.by_seed, each.is_ratio, *pooled) for each in contrasts]


def pooled_deviation(groups: Iterable[Sequence[float]]) -> tuple[float, int] | None:
    """The common deviation of several groups around their own means, and its degrees of freedom.

    >>> pooled_deviation([[1.0, 3.0], [10.0, 12.0, 14.0]])
    (1.8257418583505538, 3)
    """
    groups = [group for group in groups if len(group) > 1]
    degrees = sum(len(group) - 1 for group in groups)
    if degrees == 0:
        return None
    squares = math.fsum((len(group) - 1) * stdev(group) ** 2 for group in groups)
    return math.sqrt(squares / degrees), degrees


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values adjusted by Holm's method, in their order.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def equivalence_margin(contrast: Paired) -> float | None:
    """The smallest margin within which two methods are equivalent by two one-sided tests at 5%.

    That is the end of the 90% interval that lies farther from no difference.
    """
    interval = contrast.interval(0.90)
    if interval is None:
        return None
    return max(abs(end) for end in interval)


def fluctuation(tests: Sequence[float]) -> float:
    """The deviation of single tests around a slowly changing mean, by successive differences.

    sqrt(mean of (x[i+1] - x[i])^2 / 2): independent noise of deviation s gives s, and a trend adds
    little.

    >>> fluctuation([1.0, 3.0, 1.0, 3.0])
    1.4142135623730951
    """
    steps = [(after - before) ** 2 for before, after in itertools.pairwise(tests)]
    return math.sqrt(fmean(steps) / 2)


def selection_fluctuation(probability: float, devices: int) -> float:
    """The relative deviation of a mean over the devices that arrive, when each does with p.

    sqrt((1 - p) / (K p)): the variance of drawing K p of K devices. The ratio of two of them
    predicts how much steadier one method is than another.

    >>> round(selection_fluctuation(0.810, 10) / selection_fluctuation(0.704, 10), 2)
    0.75
    """
    return math.sqrt((1 - probability) / (devices * probability))


def student_t(degrees: float, confidence: float = CONFIDENCE) -> float:
    """The two-sided quantile of Student's distribution."""
    return float(stdtrit(degrees, (1 + confidence) / 2))
