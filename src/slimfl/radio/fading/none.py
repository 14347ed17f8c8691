"""No fading: the gain is its mean."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slimfl.radio.fading.model import Gains


@dataclass(frozen=True)
class NoFading:
    """g = 1 in every round: additive white Gaussian noise alone."""

    def gains(self, seed: int, round: int, devices: int) -> Gains:
        """Ones."""
        return np.ones(devices)

    def survival(self, threshold: NDArray[np.float64]) -> NDArray[np.float64]:
        """1 up to the threshold 1."""
        return self.sum_survival(threshold, 1)

    def from_scattering(self, scattering: NDArray[np.float64]) -> Gains:
        """Ones."""
        return np.ones(len(scattering))

    def sum_survival(self, threshold: NDArray[np.float64], copies: int) -> NDArray[np.float64]:
        """1 up to the number of copies."""
        return (np.asarray(threshold) <= copies).astype(np.float64)
