"""Superposition coding and successive decoding: section IV of the paper for any number of messages.

Messages 1..S share one signal. Message i has the share P_i of the power and the spectral efficiency
u_i/W. The receiver decodes them in order and treats the later ones as interference, so with
u'_i = 2^(u_i/W) - 1 and c = sigma^2 d^beta, message i needs the gain

    g >= c u'_i / a_i,    a_i = P_i - u'_i (P_{i+1} + ... + P_S),

and is decoded when this holds for messages 1..i: equation (5), a running maximum.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slimfl.errors import RequestError

Floats = NDArray[np.float64]


def sinr_target(spectral_efficiency: float | Sequence[float] | Floats) -> Floats:
    """u' = 2^(u/W) - 1, the signal-to-interference-plus-noise ratio that a rate needs."""
    exponent = np.asarray(spectral_efficiency, dtype=np.float64) * np.log(2)
    return np.asarray(np.expm1(exponent))


@dataclass(frozen=True)
class Superposition:
    """Messages in one signal: their rates and their shares of the transmit power."""

    spectral_efficiencies: tuple[float, ...]
    split: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.split) != len(self.spectral_efficiencies):
            raise RequestError(
                f"the split has {len(self.split)} shares for {len(self.spectral_efficiencies)} "
                "segments; give one share a segment"
            )
        if any(share <= 0 for share in self.split) or abs(sum(self.split) - 1) > 1e-6:
            raise RequestError(
                f"the power split {_numbers(self.split)} must be positive and sum to 1"
            )
        margins = self.margins
        if not (margins > 0).all():
            from slimfl.radio.power import rounded_split

            segment = int(np.argmax(margins <= 0)) + 1
            good = rounded_split(self.spectral_efficiencies)
            raise RequestError(
                f"the power split {_numbers(self.split)} can never be decoded: segment {segment} "
                f"drowns in the segments after it; {_numbers(good)} would work"
            )

    @property
    def margins(self) -> Floats:
        """a_i / P: what is left of a message's power after the interference it can bear."""
        split = np.asarray(self.split)
        after = split[::-1].cumsum()[::-1] - split
        return np.asarray(split - sinr_target(self.spectral_efficiencies) * after)

    def thresholds(self, noise_to_power: float | Floats) -> Floats:
        """The gain each message needs, given c / P; non-decreasing.

        For a column of c / P, a row of thresholds each.
        """
        ratio = np.asarray(noise_to_power)[..., None]
        needed = ratio * sinr_target(self.spectral_efficiencies) / self.margins
        nested: Floats = np.maximum.accumulate(needed, axis=-1)
        return nested


def single(spectral_efficiency: float) -> Superposition:
    """One message with all the power: Vanilla FL."""
    return Superposition((spectral_efficiency,), (1.0,))


def _numbers(split: Sequence[float]) -> str:
    return ", ".join(f"{share:.15g}" for share in split)
