"""Nakagami-m fading: the envelope has Nakagami's distribution, so g ~ Gamma(m, 1/m).

m = 1 is Rayleigh, m = 1/2 the one-sided Gaussian, and m to infinity is no fading (Nakagami 1960;
Simon and Alouini, section 2.2.1.4). There is no m below 1/2.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slimfl.radio.fading.model import Gains, in_range
from slimfl.rng import generator


@dataclass(frozen=True)
class Nakagami:
    """The gain has variance 1 / m."""

    m: float

    def __post_init__(self) -> None:
        in_range("Nakagami's m", self.m, 0.5, 1e4)

    def gains(self, seed: int, round: int, devices: int) -> Gains:
        """Sequential gamma draws, so that device k's does not depend on the number of devices."""
        drawn = generator(seed, "fading", round).standard_gamma(self.m, devices)
        drawn /= self.m
        return drawn

    def survival(self, threshold: NDArray[np.float64]) -> NDArray[np.float64]:
        """The regularised upper incomplete gamma function Q(m, m threshold)."""
        return self.sum_survival(threshold, 1)

    def from_scattering(self, scattering: NDArray[np.float64]) -> Gains:
        """Maps the exponential power of s to the gamma quantile of the same probability."""
        from scipy.special import gammainccinv

        power = np.einsum("ij,ij->i", scattering, scattering)
        return np.asarray(gammainccinv(self.m, np.exp(-power)) / self.m)

    def sum_survival(self, threshold: NDArray[np.float64], copies: int) -> NDArray[np.float64]:
        """Shapes add up."""
        from scipy.special import gammaincc

        scaled = self.m * np.asarray(threshold, dtype=np.float64)
        return np.asarray(gammaincc(copies * self.m, scaled))
