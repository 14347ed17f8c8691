"""Decibels and back."""


def from_db(decibel: float) -> float:
    """A power ratio from decibels."""
    return float(10 ** (decibel / 10))


def watt(dbm: float) -> float:
    """Watts from dBm.

    >>> round(watt(23), 4)
    0.1995
    """
    return from_db(dbm - 30)
