"""Tapped delay lines: frequency-selective fading by the profiles of 3GPP TR 38.901.

Every tap is CN(0, p_l) at its delay; profiles D and E begin with a line of sight. Over the band::

    H(f) = sum_l h_l exp(-2 pi i f tau_l),    g(f) = |H(f)|^2 with mean 1,

so that taps far apart give gains that differ from subcarrier to subcarrier. Delays are in units of
the delay spread: with a spread of 0 the profiles are Rayleigh and (D, E) Rician fading.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slimfl.experiment import RadioSection
from slimfl.rng import generator

Floats = NDArray[np.float64]

#: Tables 7.7.2-1 to 7.7.2-5: normalised delays, powers in dB. The first tap of D and E is in sight.
PROFILES: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "tdl-a": (
        (
            0.0, 0.3819, 0.4025, 0.5868, 0.4610, 0.5375, 0.6708, 0.5750, 0.7618, 1.5375, 1.8978,
            2.2242, 2.1718, 2.4942, 2.5119, 3.0582, 4.0810, 4.4579, 4.5695, 4.7966, 5.0066, 5.3043,
            9.6586,
        ),
        (
            -13.4, 0.0, -2.2, -4.0, -6.0, -8.2, -9.9, -10.5, -7.5, -15.9, -6.6, -16.7, -12.4, -15.2,
            -10.8, -11.3, -12.7, -16.2, -18.3, -18.9, -16.6, -19.9, -29.7,
        ),
    ),
    "tdl-b": (
        (
            0.0, 0.1072, 0.2155, 0.2095, 0.2870, 0.2986, 0.3752, 0.5055, 0.3681, 0.3697, 0.5700,
            0.5283, 1.1021, 1.2756, 1.5474, 1.7842, 2.0169, 2.8294, 3.0219, 3.6187, 4.1067, 4.2790,
            4.7834,
        ),
        (
            0.0, -2.2, -4.0, -3.2, -9.8, -1.2, -3.4, -5.2, -7.6, -3.0, -8.9, -9.0, -4.8, -5.7, -7.5,
            -1.9, -7.6, -12.2, -9.8, -11.4, -14.9, -9.2, -11.3,
        ),
    ),
    "tdl-c": (
        (
            0.0, 0.2099, 0.2219, 0.2329, 0.2176, 0.6366, 0.6448, 0.6560, 0.6584, 0.7935, 0.8213,
            0.9336, 1.2285, 1.3083, 2.1704, 2.7105, 4.2589, 4.6003, 5.4902, 5.6077, 6.3065, 6.6374,
            7.0427, 8.6523,
        ),
        (
            -4.4, -1.2, -3.5, -5.2, -2.5, 0.0, -2.2, -3.9, -7.4, -7.1, -10.7, -11.1, -5.1, -6.8,
            -8.7, -13.2, -13.9, -13.9, -15.8, -17.1, -16.0, -15.7, -21.6, -22.8,
        ),
    ),
    "tdl-d": (
        (
            0.0, 0.0, 0.035, 0.612, 1.363, 1.405, 1.804, 2.596, 1.775, 4.042, 7.937, 9.424, 9.708,
            12.525,
        ),
        (
            -0.2, -13.5, -18.8, -21.0, -22.8, -17.9, -20.1, -21.9, -22.9, -27.8, -23.6, -24.8,
            -30.0, -27.7,
        ),
    ),
    "tdl-e": (
        (
            0.0, 0.0, 0.5133, 0.5440, 0.5630, 0.5440, 0.7112, 1.9092, 1.9293, 1.9589, 2.6426,
            3.7136, 5.4524, 12.0034, 20.6519,
        ),
        (
            -0.03, -22.03, -15.8, -18.1, -19.8, -22.9, -22.4, -18.6, -20.8, -22.6, -22.3, -25.6,
            -20.2, -29.8, -29.2,
        ),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class TappedDelayLine:
    """A profile, as a receiver with some subcarriers sees it."""

    delays_s: tuple[float, ...]
    powers: tuple[float, ...]
    """Of the taps; they sum to 1."""
    in_sight: bool
    """Whether the first tap has a constant magnitude."""
    bandwidth_hz: float
    subcarriers: int

    def over_band(self, seed: int, round: int, devices: int) -> Floats:
        """[device, subcarrier]: power gains; device k has the k-th row for any count."""
        drawn = generator(seed, "taps", round).standard_normal((devices, len(self.powers), 2))
        taps = np.sqrt(0.5) * drawn.view(np.complex128)[:, :, 0]
        if self.in_sight:
            taps[:, 0] = 1.0  # its phase does not matter: those of the others are uniform
        response = taps @ self._waves
        return np.asarray(response.real**2 + response.imag**2)

    @property
    def _waves(self) -> NDArray[np.complex128]:
        """[tap, subcarrier]."""
        centres = (np.arange(self.subcarriers) + 0.5) / self.subcarriers - 0.5
        turns = np.multiply.outer(np.asarray(self.delays_s), centres * self.bandwidth_hz)
        return np.asarray(np.sqrt(self.powers)[:, None] * np.exp(-2j * np.pi * turns))


def build_profile(section: RadioSection) -> TappedDelayLine | None:
    """The profile that `radio.fading` names; None where the link is flat."""
    if section.fading not in PROFILES:
        return None
    delays, powers_db = PROFILES[section.fading]
    powers = 10 ** (np.array(powers_db) / 10)
    return TappedDelayLine(
        tuple(delay * section.delay_spread_s for delay in delays),
        tuple((powers / powers.sum()).tolist()),
        section.fading in ("tdl-d", "tdl-e"),
        section.bandwidth_hz,
        section.subcarriers,
    )
