"""The interface of fading models: the distribution of a link's power gain, and its draws.

Gains are a function of (seed, round, device), so two methods with the same seed, and a resumed run,
see the same channel.
"""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from slimfl.errors import RequestError
from slimfl.rng import generator

Gains = NDArray[np.float64]


class Fading(Protocol):
    """The distribution of the power gain g, with mean 1."""

    def gains(self, seed: int, round: int, devices: int) -> Gains:
        """The gains of devices 0 to `devices` - 1 in a round."""

    def survival(self, threshold: NDArray[np.float64]) -> NDArray[np.float64]:
        """Pr(g >= threshold)."""


@runtime_checkable
class GaussianFading(Fading, Protocol):
    """A fading model derived from complex Gaussian scattering.

    All built-in models are of this kind, so each can be correlated from round to round and combined
    over several attempts.
    """

    def from_scattering(self, scattering: NDArray[np.float64]) -> Gains:
        """Gains from [device, 2]: real and imaginary parts of CN(0, 1) numbers."""

    def sum_survival(self, threshold: NDArray[np.float64], copies: int) -> NDArray[np.float64]:
        """Pr(g_1 + ... + g_copies >= threshold) for independent gains: chase combining."""


def scattering(seed: int, round: int, devices: int, purpose: str = "fading") -> NDArray[np.float64]:
    """[device, 2]: CN(0, 1) numbers; row k does not depend on the number of devices."""
    drawn = generator(seed, purpose, round).standard_normal((devices, 2))
    drawn *= np.sqrt(0.5)
    return drawn


def in_range(name: str, value: float, low: float, high: float) -> None:
    """Refuse a parameter outside its range, or NaN."""
    if not low <= value <= high:
        raise RequestError(f"{name} must be from {low:g} to {high:g}, not {value:g}")
