"""Log-normal shadowing: obstacles that change the mean gain by X = 10^(N(0, sigma_db) / 10).

The median of X is 1, as in TR 38.901, so its mean is above 1. A shadowed gain is g X, and

    Pr(g X >= t) = E[ Pr(g >= t / X) ],

an integral over one normal variable. The trapezoidal rule has a negligible error for a Gaussian
weight. Without fading, the result is the normal distribution itself.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slimfl.radio.fading.model import Gains, GaussianFading, in_range
from slimfl.radio.fading.none import NoFading
from slimfl.rng import generator

Floats = NDArray[np.float64]

#: Step and range of the integral, in standard deviations.
STEP, REACH = 0.01, 8.0
#: Up to this many thresholds are integrated one by one; more are interpolated on a grid.
ONE_BY_ONE = 64
NATURAL_PER_DB = np.log(10) / 10


def shadow(seed: int, round: int, devices: int) -> Floats:
    """Standard normal numbers; the k-th does not depend on the number of devices."""
    return generator(seed, "shadowing", round).standard_normal(devices)


def shadow_gain(normal: Floats, sigma_db: float | Floats) -> Floats:
    """X for standard normal numbers."""
    logs = normal * (NATURAL_PER_DB * np.asarray(sigma_db))
    return np.asarray(np.exp(logs, out=logs))


@dataclass(frozen=True)
class Shadowed:
    """A fading model times log-normal shadowing, both new in every round."""

    fading: GaussianFading
    sigma_db: float

    def __post_init__(self) -> None:
        in_range("the shadowing deviation in dB", self.sigma_db, 0, 50)

    def gains(self, seed: int, round: int, devices: int) -> Gains:
        """The product."""
        gains = self.fading.gains(seed, round, devices)
        return gains * shadow_gain(shadow(seed, round, devices), self.sigma_db)

    def survival(self, threshold: Floats) -> Floats:
        """By integration over the shadow."""
        return self.sum_survival(threshold, 1)

    def from_scattering(self, scattering: Floats) -> Gains:
        """The gains without shadowing."""
        return self.fading.from_scattering(scattering)

    def sum_survival(self, threshold: Floats, copies: int) -> Floats:
        """All attempts in a round have the same shadowing."""
        threshold = np.asarray(threshold, dtype=np.float64)
        if self.sigma_db == 0:
            return self.fading.sum_survival(threshold, copies)
        spread = NATURAL_PER_DB * self.sigma_db
        found = np.where(threshold > 0, 0.0, 1.0)
        inside = (threshold > 0) & np.isfinite(threshold)
        logs = np.log(threshold[inside])
        if isinstance(self.fading, NoFading):
            from scipy.special import ndtr

            found[inside] = ndtr((np.log(copies) - logs) / spread)
        elif logs.size:
            values, where = np.unique(logs, return_inverse=True)
            found[inside] = self._integrated(values, spread, copies)[where]
        return found

    def _integrated(self, logs: Floats, spread: float, copies: int) -> Floats:
        """The integral at ascending logarithms of the threshold."""
        nodes = np.arange(-REACH, REACH + STEP / 2, STEP)
        weights = np.exp(-(nodes**2) / 2)
        weights /= weights.sum()
        if len(logs) <= ONE_BY_ONE:
            around = np.exp(logs[:, None] - spread * nodes)
            return np.asarray(self.fading.sum_survival(around, copies) @ weights)
        from scipy.interpolate import CubicSpline

        # with thresholds spaced like the nodes, the integral is a convolution
        step = spread * STEP
        grid = np.arange(logs[0] - step, logs[-1] + 2 * step, step)
        reach = len(nodes) // 2
        wide = grid[0] + step * np.arange(-reach, len(grid) + reach)
        survival = self.fading.sum_survival(np.exp(wide), copies)
        between = CubicSpline(grid, np.convolve(survival, weights, "valid"))
        return np.asarray(np.clip(between(logs), 0.0, 1.0))
