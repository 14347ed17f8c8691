"""Differences between methods with the same seeds, with a confidence interval.

With the same seed, both methods of a pair see the same data, gains and initial weights, so the
difference for each seed is one sample. The interval is Student's: mean ± t s / sqrt(n), with the n
differences taken as independent and normal. One seed gives a difference without an interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

CONFIDENCE = 0.95

RULE = (
    "Each claim comes with the differences between its methods, paired by seed, with Student's "
    f"{CONFIDENCE:.0%} confidence interval over the seeds; one seed gives no interval. Verdicts "
    "use them only where they say so."
)


@dataclass(frozen=True)
class Difference:
    """One quantity minus another, over the seeds that both have."""

    larger: str
    """What the claim says is larger, or SlimFL if it does not say."""
    smaller: str
    unit: str
    mean: float
    seeds: int
    half_width: float | None
    """Half width of the confidence interval; None with one seed."""

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        low, high = None, None
        if self.half_width is not None:
            # the last bits of t depend on the version of SciPy
            low, high = (float(f"{self.mean + sign * self.half_width:.9g}") for sign in (-1, 1))
        return {
            "larger": self.larger,
            "smaller": self.smaller,
            "unit": self.unit,
            "mean": self.mean,
            "low": low,
            "high": high,
            "confidence": CONFIDENCE,
            "seeds": self.seeds,
        }


def difference(
    larger: str,
    smaller: str,
    first: Mapping[int, float],
    second: Mapping[int, float],
    unit: str = "",
) -> Difference | None:
    """The paired difference of two quantities by seed; None if no seed has both."""
    samples = [first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())]
    if not samples or not all(math.isfinite(each) for each in samples):
        return None
    half = None
    if len(samples) > 1:
        half = student_t(len(samples) - 1) * stdev(samples) / math.sqrt(len(samples))
    return Difference(larger, smaller, unit, fmean(samples), len(samples), half)


def student_t(degrees: int, confidence: float = CONFIDENCE) -> float:
    """The two-sided quantile of Student's distribution."""
    from scipy.special import stdtrit  # scipy.stats would take a second to import

    return float(stdtrit(degrees, (1 + confidence) / 2))
