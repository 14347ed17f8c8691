"""Decibels and back, of numbers and of arrays."""

from math import log10
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@overload
def from_db(decibel: float) -> float: ...
@overload
def from_db(decibel: Floats) -> Floats: ...
def from_db(decibel: Any) -> Any:
    """Power ratios from decibels."""
    return 10 ** (decibel / 10)


@overload
def to_db(ratio: float) -> float: ...
@overload
def to_db(ratio: Floats) -> Floats: ...
def to_db(ratio: Any) -> Any:
    """Decibels from power ratios.

    >>> to_db(100)
    20.0
    """
    return 10 * (np.log10(ratio) if isinstance(ratio, np.ndarray) else log10(ratio))


@overload
def watt(dbm: float) -> float: ...
@overload
def watt(dbm: Floats) -> Floats: ...
def watt(dbm: Any) -> Any:
    """Watts from dBm.

    >>> round(watt(23), 4)
    0.1995
    """
    return from_db(dbm - 30)
