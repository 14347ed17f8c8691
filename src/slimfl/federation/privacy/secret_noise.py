"""Gaussian noise from the operating system's cryptographic generator.

NumPy's generators are fast and predictable: from enough of their output, all the rest can be
computed, and with it the noise that should hide a device. Here every value is made from 64 fresh
bits of `os.urandom` and from nothing else: one bit for the sign, 52 for the distance from zero, by
the inverse of the normal distribution.
"""

import os

import numpy as np
from numpy.typing import NDArray

#: Values made at a time; bounds the memory for large models.
CHUNK = 1 << 20


def secret_gaussian(count: int) -> NDArray[np.float64]:
    """Independent draws of mean 0 and deviation 1, which no seed determines."""
    noise = np.empty(count)
    for start in range(0, count, CHUNK):
        part = noise[start : start + CHUNK]
        part[:] = gaussian_of(np.frombuffer(os.urandom(8 * len(part)), np.uint64))
    return noise


def gaussian_of(bits: NDArray[np.uint64]) -> NDArray[np.float64]:
    """One normal value for each 64 bits.

    The distance comes from a probability in (0, 1/2), where floating point resolves the tail to
    8.2 deviations; one in (0, 1) would round to 1 now and then, which stands for infinity.
    """
    from scipy.special import ndtri

    probability = ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-53
    sign = np.where(bits & np.uint64(1), 1.0, -1.0)
    return np.asarray(sign * ndtri(probability))
