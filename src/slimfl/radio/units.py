"""Decibels and back."""

from math import log10


def from_db(decibel: float) -> float:
    """A power ratio from decibels."""
    return float(10 ** (decibel / 10))


def to_db(ratio: float) -> float:
    """Decibels from a power ratio.

    >>> to_db(100)
    20.0
    """
    return 10 * log10(ratio)


def watt(dbm: float) -> float:
    """Watts from dBm.

    >>> round(watt(23), 4)
    0.1995
    """
    return from_db(dbm - 30)
