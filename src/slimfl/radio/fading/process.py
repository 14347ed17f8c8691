"""Fading that is correlated from round to round.

Both processes make complex scattering s with E|s|^2 = 1 in every round:

* AR(1), or Gauss-Markov: s' = a s + sqrt(1 - a^2) w. With a Doppler frequency f_d and rounds that
  begin T apart, a = J_0(2 pi f_d T): neighbouring rounds are correlated as in Clarke's model.
* Jakes: N equally strong waves from all directions,
  s = N^(-1/2) sum_n exp(i (2 pi f_d T cos(alpha_n) round + phi_n)), with uniform arrival angles
  alpha_n and phases phi_n for every device (Clarke 1968, Jakes 1974). Rounds n apart are correlated
  by J_0(2 pi f_d T n), and their powers by its square. No device is persistently better than
  another. s is Gaussian in the limit of many waves: its power has variance 1 - 1/N.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from slimfl.radio.fading.model import in_range, scattering
from slimfl.rng import generator

Floats = NDArray[np.float64]
State = dict[str, NDArray[Any]]

#: Number of waves per device in Jakes' model.
WAVES = 64
#: Number of devices that are computed at once; bounds the memory.
CHUNK = 1 << 12


def remembered(before: Floats, innovation: Floats, memory: float) -> Floats:
    """memory * before + sqrt(1 - memory^2) * innovation, computed in place of the innovation."""
    new = np.sqrt(1 - memory**2)
    for begin in range(0, len(before), CHUNK):
        rows = slice(begin, begin + CHUNK)
        innovation[rows] *= new
        innovation[rows] += memory * before[rows]
    return innovation


class FadingProcess(Protocol):
    """Scattering from round to round."""

    def start(self, seed: int, devices: int) -> State:
        """The state before the first round."""

    def step(self, state: State, seed: int, round: int, devices: int) -> tuple[Floats, State]:
        """The scattering [device, 2] of a round, and the next state."""


@dataclass(frozen=True)
class Autoregressive:
    """AR(1) with the coefficient `correlation`."""

    correlation: float

    def __post_init__(self) -> None:
        in_range("the correlation", self.correlation, -1, 1)

    def start(self, seed: int, devices: int) -> State:
        """Drawn from the stationary distribution."""
        return {"scattering": scattering(seed, 0, devices)}

    def step(self, state: State, seed: int, round: int, devices: int) -> tuple[Floats, State]:
        """Advance all devices, whoever takes part."""
        before = state["scattering"]
        after = remembered(before, scattering(seed, round, len(before)), self.correlation)
        return after, {"scattering": after}


@dataclass(frozen=True)
class Jakes:
    """Waves from fixed directions; a function of (seed, round, device) without memory."""

    cycles_per_round: float
    """f_d T."""

    def __post_init__(self) -> None:
        in_range("Doppler frequency times round duration", self.cycles_per_round, 0, 1e9)

    def start(self, seed: int, devices: int) -> State:
        """No state."""
        return {}

    def step(self, state: State, seed: int, round: int, devices: int) -> tuple[Floats, State]:
        """Draw the waves again from their key, for some devices at a time."""
        found = np.empty((devices, 2))
        random = generator(seed, "waves")
        for begin in range(0, devices, CHUNK):
            rows = slice(begin, min(begin + CHUNK, devices))
            # one row per device, so that device k's numbers do not depend on how many there are
            drawn = random.random((rows.stop - begin, 2 * WAVES))
            drawn *= 2 * np.pi
            angle, phase = np.split(drawn, 2, axis=1)
            phase += np.cos(angle) * (2 * np.pi * self.cycles_per_round * round)
            found[rows, 0] = np.cos(phase).sum(axis=1)
            found[rows, 1] = np.sin(phase).sum(axis=1)
        found /= np.sqrt(WAVES)
        return found, state


def doppler_correlation(doppler_hz: float, round_s: float) -> float:
    """J_0(2 pi f_d T): the correlation of scattering in rounds that begin T apart.

    >>> round(doppler_correlation(0.1, 1.0), 4)
    0.9037
    """
    from scipy.special import j0

    return float(j0(2 * np.pi * doppler_hz * round_s))


def doppler_hz(speed_m_s: float, carrier_hz: float) -> float:
    """The largest Doppler shift v f_c / c.

    >>> round(doppler_hz(30 / 3.6, 2e9), 1)
    55.6
    """
    return speed_m_s * carrier_hz / 299_792_458.0
