"""Small-scale fading: how the power gain of a link varies from round to round.

A fading model is a class with `gains` and `survival`. Gains are a function of (seed, round,
device): two methods under one seed, and the same run resumed, meet the same channel.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from slimfl.rng import generator

Gains = NDArray[np.float64]


class Fading(Protocol):
    """The distribution of the power gain g, with mean 1."""

    def gains(self, seed: int, round: int, devices: int) -> Gains:
        """The gains of devices 0 to `devices` - 1 in a round."""

    def survival(self, threshold: NDArray[np.float64]) -> NDArray[np.float64]:
        """Pr(g >= threshold)."""


class Rayleigh:
    """No line of sight: g ~ Exp(1), new in every round."""

    def gains(self, seed: int, round: int, devices: int) -> Gains:
        """Inverse-transform draws, so that device k's gain is the k-th draw for any count."""
        uniform = generator(seed, "fading", round).random(devices)
        np.log1p(np.negative(uniform, out=uniform), out=uniform)
        return np.negative(uniform, out=uniform)

    def survival(self, threshold: NDArray[np.float64]) -> NDArray[np.float64]:
        """exp(-threshold)."""
        return np.exp(-np.asarray(threshold, dtype=np.float64))


FADING = {"rayleigh": Rayleigh}
