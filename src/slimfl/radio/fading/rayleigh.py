"""Rayleigh fading: no line of sight, many scatterers (the paper's)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slimfl.radio.fading.model import Gains
from slimfl.rng import generator


@dataclass(frozen=True)
class Rayleigh:
    """g ~ Exp(1), new in every round."""

    def gains(self, seed: int, round: int, devices: int) -> Gains:
        """Inverse-transform draws, so that device k's gain does not depend on the others."""
        uniform = generator(seed, "fading", round).random(devices)
        np.log1p(np.negative(uniform, out=uniform), out=uniform)
        return np.negative(uniform, out=uniform)

    def survival(self, threshold: NDArray[np.float64]) -> NDArray[np.float64]:
        """exp(-threshold)."""
        return np.exp(-np.asarray(threshold, dtype=np.float64))

    def from_scattering(self, scattering: NDArray[np.float64]) -> Gains:
        """The power of the scattered waves."""
        return np.asarray(np.einsum("ij,ij->i", scattering, scattering))

    def sum_survival(self, threshold: NDArray[np.float64], copies: int) -> NDArray[np.float64]:
        """A sum of exponentials has Erlang's distribution: Q(copies, threshold)."""
        from scipy.special import gammaincc

        return np.asarray(gammaincc(copies, np.asarray(threshold, dtype=np.float64)))
