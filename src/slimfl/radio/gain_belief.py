"""What the server believes of every device's mean gain, learned from how much it decoded.

Under Rayleigh fading a device with x = ln(c / P) gets at least the first j messages through with
probability exp(-k_j e^x), k_j their threshold at c / P = 1. So a round in which exactly d messages
arrive has the likelihood exp(-k_d e^x) - exp(-k_{d+1} e^x), with k_0 = 0 and no second term once
all arrive. It is log-concave in x, because the logarithm of an exponential variable has a
log-concave density. The belief is normal in x; a round moves it to the largest posterior density
and takes the curvature there as its precision (Laplace's approximation).

Between rounds the variance grows, so that old rounds are forgotten when devices move.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimfl.radio.signals import Signal

Floats = NDArray[np.float64]

#: Newton's steps towards the largest posterior density, and the longest of them.
_STEPS, _LONGEST = 25, 1.0
#: Within this of ln(c / P) a posterior is at its largest.
_CLOSE = 1e-10
_DB = np.log(10) / 10
#: How unsure the server is of a device of which it has heard nothing.
PRIOR_DEVIATION_DB = 8.0


class GainBelief:
    """Mean and variance of ln(c / P) of every device: two numbers each."""

    def __init__(self, devices: int, noise_to_power: float, drift_db: float) -> None:
        self.mean = np.full(devices, np.log(noise_to_power))
        self.variance = np.full(devices, (PRIOR_DEVIATION_DB * _DB) ** 2)
        self.drift = (drift_db * _DB) ** 2
        """By which the variance grows per round, up to that of the beginning."""

    def noise_to_power(self, ids: NDArray[np.int64]) -> Floats:
        """The most likely c / P of some devices."""
        return np.asarray(np.exp(self.mean[ids]))

    def observe(
        self, ids: NDArray[np.int64], signals: Sequence[Signal], decoded: Sequence[int]
    ) -> None:
        """Learn from a round: how many messages of each device's signal were decoded."""
        most = (PRIOR_DEVIATION_DB * _DB) ** 2
        self.variance = np.minimum(self.variance + self.drift, most)
        if not len(ids):
            return
        bounds = np.array([_interval(s, d) for s, d in zip(signals, decoded, strict=True)])
        mean, variance = self.mean[ids], self.variance[ids]
        x = mean.copy()
        for _ in range(_STEPS):
            slope, curvature = _likelihood(x, bounds)
            step = (slope - (x - mean) / variance) / (1 / variance - curvature)
            step = np.clip(step, -_LONGEST, _LONGEST)
            x = x + step
            if np.abs(step).max() < _CLOSE:
                break
        _, curvature = _likelihood(x, bounds)
        self.mean[ids], self.variance[ids] = x, 1 / (1 / variance - curvature)

    def state(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint holds."""
        return {"mean": self.mean.copy(), "variance": self.variance.copy()}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take back what `state` gave."""
        self.mean = np.array(state["mean"], np.float64)
        self.variance = np.array(state["variance"], np.float64)


def _interval(sent: Signal, decoded: int) -> tuple[float, float]:
    """The thresholds, at c / P = 1, between which the gain must have been."""
    thresholds = np.maximum.accumulate(sent.coding.thresholds(1.0))
    low = float(thresholds[decoded - 1]) if decoded else 0.0
    return low, float(thresholds[decoded]) if decoded < len(thresholds) else np.inf


def _likelihood(x: Floats, bounds: Floats) -> tuple[Floats, Floats]:
    """First and second derivative of ln(exp(-a e^x) - exp(-b e^x)) in x.

    With A = a e^x, B = b e^x and q = 1 / (e^(B - A) - 1) it is -A + ln(1 - e^-(B - A)), so the
    first derivative is -A + (B - A) q and the second that plus -(B - A)^2 q (1 + q).
    """
    scale = np.exp(x)
    low = bounds[:, 0] * scale
    ends = np.isfinite(bounds[:, 1])
    gap = np.where(ends, bounds[:, 1], bounds[:, 0] + 1.0) * scale - low
    odds = np.where(ends, 1 / np.expm1(np.clip(gap, 1e-300, 700)), 0.0)
    slope = -low + gap * odds
    return slope, slope - gap**2 * odds * (1 + odds)
