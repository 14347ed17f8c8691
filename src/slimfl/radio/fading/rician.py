"""Rician fading: a line of sight beside the scatterers.

The gain g is the squared magnitude of sqrt(K / (K + 1)) + sqrt(1 / (K + 1)) s with s ~ CN(0, 1), so
2 (K + 1) g is non-central
chi-square with 2 degrees of freedom and non-centrality 2 K, and its survival is Marcum's

    Pr(g >= t) = Q_1(sqrt(2 K), sqrt(2 (K + 1) t))

(Simon and Alouini, Digital Communication over Fading Channels, 2nd edition, section 2.2.1.2).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slimfl.radio.fading.model import Gains, in_range, scattering


@dataclass(frozen=True)
class Rician:
    """K is the power of the line of sight over that of all scatterers; K = 0 is Rayleigh."""

    k: float

    def __post_init__(self) -> None:
        in_range("the K factor", self.k, 0, 1e4)

    def gains(self, seed: int, round: int, devices: int) -> Gains:
        """New scattering in every round."""
        return self.from_scattering(scattering(seed, round, devices))

    def survival(self, threshold: NDArray[np.float64]) -> NDArray[np.float64]:
        """Marcum's Q of order 1."""
        return self.sum_survival(threshold, 1)

    def from_scattering(self, scattering: NDArray[np.float64]) -> Gains:
        """The phase of the line of sight does not matter, as that of the scattering is uniform."""
        weak = 1 / np.sqrt(self.k + 1)
        real = weak * scattering[:, 0]
        real += np.sqrt(self.k) * weak
        real *= real
        imaginary = weak * scattering[:, 1]
        imaginary *= imaginary
        real += imaginary
        return np.asarray(real)

    def sum_survival(self, threshold: NDArray[np.float64], copies: int) -> NDArray[np.float64]:
        """Marcum's Q of order `copies`: degrees of freedom and non-centralities add up."""
        from scipy.stats import ncx2

        scaled = 2 * (self.k + 1) * np.asarray(threshold, dtype=np.float64)
        return np.asarray(ncx2.sf(scaled, 2 * copies, 2 * copies * self.k))
