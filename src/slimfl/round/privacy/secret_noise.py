"""Gaussian noise from the operating system's cryptographic generator.

NumPy's generators are fast but predictable: enough of their output reveals the rest, and with it
the noise that should hide a device. Here every value is made from 64 fresh bits of `os.urandom`:
one for the sign, 52 for the distance from zero, by the inverse of the normal distribution.
"""

import os

import numpy as np
from numpy.typing import NDArray

#: Number of values generated at a time; bounds the memory for large models.
CHUNK = 1 << 20


def secret_gaussian(count: int) -> NDArray[np.float64]:
    """Independent standard normal values that depend on no seed."""
    noise = np.empty(count)
    for start in range(0, count, CHUNK):
        part = noise[start : start + CHUNK]
        part[:] = gaussian_of(np.frombuffer(os.urandom(8 * len(part)), np.uint64))
    return noise


def gaussian_of(bits: NDArray[np.uint64]) -> NDArray[np.float64]:
    """One standard normal value per 64 bits.

    The distance comes from a probability in (0, 1/2), where floating point resolves the tail to 8.2
    deviations; one in (0, 1) would sometimes round to 1, which maps to infinity.
    """
    from scipy.special import ndtri

    probability = ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-53
    sign = np.where(bits & np.uint64(1), 1.0, -1.0)
    return np.asarray(sign * ndtri(probability))
