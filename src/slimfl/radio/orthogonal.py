"""Segments sent one after the other: the alternative that superposition is compared with.

Messages do not interfere with each other. The split divides one of two resources:

* the power (`InTurnAtLowerPower`): message i has the share P_i of the power, at its usual rate. The
  airtime is longer. The energy is that of the superposed signal if all messages take equally long,
  and less otherwise, because no message lasts as long as the longest.
* the airtime (`InTurnInShorterTime`): message i has full power in the share P_i of the time that
  the superposed signal would take, so its rate is higher. Airtime and energy are the same.

As with superposition, a message counts only if those before it are decoded.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slimfl.radio.superposition import Floats, check_shares, sinr_target


@dataclass(frozen=True)
class InTurnAtLowerPower:
    """Message i at its own rate, with its share of the power; at most superposition's energy."""

    spectral_efficiencies: tuple[float, ...]
    split: tuple[float, ...]

    def __post_init__(self) -> None:
        check_shares(self.spectral_efficiencies, self.split)

    @property
    def rates(self) -> Floats:
        """The rate of each message."""
        return np.asarray(self.spectral_efficiencies)

    def thresholds(self, noise_to_power: float | Floats) -> Floats:
        """c u'_i / P_i, as a running maximum."""
        needed = sinr_target(self.spectral_efficiencies) / np.asarray(self.split)
        ratio = np.asarray(noise_to_power)[..., None]
        return np.asarray(np.maximum.accumulate(ratio * needed, axis=-1))

    def sinr(self, snr: Floats) -> Floats:
        """[..., message]."""
        return np.asarray(np.asarray(snr)[..., None] * np.asarray(self.split))

    def durations_s(self, bits: Sequence[float], bandwidth_hz: float) -> tuple[float, float]:
        """The times of all messages; each has its share of the power."""
        seconds = [
            size / (rate * bandwidth_hz)
            for size, rate in zip(bits, self.spectral_efficiencies, strict=True)
        ]
        return sum(seconds), sum(map(float.__mul__, seconds, self.split))


@dataclass(frozen=True)
class InTurnInShorterTime:
    """Message i with full power in its share of the time; the airtime of superposition."""

    spectral_efficiencies: tuple[float, ...]
    """Rates of the superposed signal that this one is compared with."""
    split: tuple[float, ...]
    bits: tuple[float, ...] = ()
    """Bits of every message; by default proportional to the rates."""

    def __post_init__(self) -> None:
        check_shares(self.spectral_efficiencies, self.split)

    @property
    def rates(self) -> Floats:
        """The rate of each message within its share of the time."""
        usual = np.asarray(self.spectral_efficiencies)
        if self.bits:
            usual = np.asarray(self.bits) / (np.asarray(self.bits) / usual).max()
        return np.asarray(usual / np.asarray(self.split))

    def thresholds(self, noise_to_power: float | Floats) -> Floats:
        """c (2^rate - 1), as a running maximum."""
        ratio = np.asarray(noise_to_power)[..., None]
        return np.asarray(np.maximum.accumulate(ratio * sinr_target(self.rates), axis=-1))

    def sinr(self, snr: Floats) -> Floats:
        """[..., message]: all have full power."""
        return np.repeat(np.asarray(snr)[..., None], len(self.split), axis=-1)

    def durations_s(self, bits: Sequence[float], bandwidth_hz: float) -> tuple[float, float]:
        """The time of the longest superposed message, at full power."""
        longest = max(
            size / (rate * bandwidth_hz)
            for size, rate in zip(bits, self.spectral_efficiencies, strict=True)
        )
        return longest, longest
