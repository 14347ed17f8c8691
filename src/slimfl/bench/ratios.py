"""Ratios with their spread, as seconds mean little on a shared machine."""

from collections.abc import Sequence
from statistics import median


def rates(results: Sequence[dict[str, float]]) -> list[float]:
    """Images per second in every repetition."""
    return [result["images"] / result["seconds"] for result in results]


def ratio(a: Sequence[float], b: Sequence[float]) -> dict[str, float]:
    """a / b, repetition by repetition."""
    each = [x / y for x, y in zip(a, b, strict=True)]
    return spread(each)


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, smallest and largest."""
    return {"median": median(values), "min": min(values), "max": max(values)}
