"""Segments one after the other instead of superposed: what superposition is to be compared with.

No message interferes with another. The split is what the segments share:

* the energy (`InTurnAtLowerPower`): message i has the share P_i of the power, and all the time that
  the superposed signal would take. The energy is the same, the airtime longer.
* the airtime (`InTurnInShorterTime`): message i has full power in the share P_i of the time that
  the superposed signal would take, so its rate is higher. Airtime and energy are the same.

A message counts only after those before it, as with superposition.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slimfl.radio.superposition import Floats, check_shares, sinr_target


@dataclass(frozen=True)
class InTurnAtLowerPower:
    """Message i at its own rate, with its share of the power: as much energy as superposed."""

    spectral_efficiencies: tuple[float, ...]
    split: tuple[float, ...]

    def __post_init__(self) -> None:
        check_shares(self.spectral_efficiencies, self.split)

    @property
    def rates(self) -> Floats:
        """What each message is sent at."""
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
        """All messages' times; each has its share of the power."""
        seconds = [
            size / (rate * bandwidth_hz)
            for size, rate in zip(bits, self.spectral_efficiencies, strict=True)
        ]
        return sum(seconds), sum(map(float.__mul__, seconds, self.split))


@dataclass(frozen=True)
class InTurnInShorterTime:
    """Message i with full power in its share of the time: as much airtime as superposed."""

    spectral_efficiencies: tuple[float, ...]
    """Of the superposed signal with which this one is compared."""
    split: tuple[float, ...]
    bits: tuple[float, ...] = ()
    """Of every message; without them, each is as long as its rate is high."""

    def __post_init__(self) -> None:
        check_shares(self.spectral_efficiencies, self.split)

    @property
    def rates(self) -> Floats:
        """What each message is sent at in its share of the time."""
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
        """As long as the longest message takes in superposition, at full power."""
        longest = max(
            size / (rate * bandwidth_hz)
            for size, rate in zip(bits, self.spectral_efficiencies, strict=True)
        )
        return longest, longest
