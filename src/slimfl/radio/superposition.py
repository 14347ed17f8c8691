"""Superposition coding and successive decoding: section IV of the paper for any number of messages.

Messages 1..S share one signal. Message i has the share P_i of the power and the spectral efficiency
u_i/W. The receiver decodes them in order and treats later ones as interference. So with u'_i =
2^(u_i/W) - 1 and c = sigma^2 d^beta, message i needs the gain

    g >= c u'_i / a_i,    a_i = P_i - u'_i (P_{i+1} + ... + P_S),

and is decoded when this holds for messages 1..i: equation (5), a running maximum.

With imperfect cancellation, the share r of the power of every decoded message remains as
interference, and a_i = P_i - u'_i (P_{i+1} + ... + P_S + r (P_1 + ... + P_{i-1})).
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
    with np.errstate(over="ignore"):
        return np.asarray(np.expm1(exponent))


@dataclass(frozen=True)
class Superposition:
    """Messages in one signal: their rates and their shares of the transmit power."""

    spectral_efficiencies: tuple[float, ...]
    split: tuple[float, ...]
    residual: float = 0.0
    """Share of a cancelled message's power that still interferes."""

    def __post_init__(self) -> None:
        check_shares(self.spectral_efficiencies, self.split)
        if not 0 <= self.residual <= 1:
            raise RequestError(
                f"the residual interference must be from 0 to 1, not {self.residual:g}"
            )
        margins = self.margins
        if not (margins > 0).all():
            from slimfl.radio.power import rounded_split

            segment = int(np.argmax(margins <= 0)) + 1
            good = rounded_split(self.spectral_efficiencies, self.residual)
            drowns = "the segments after it" if not self.residual else "the others"
            works = (
                "no split would work, so lower the rates or the residual interference"
                if good is None
                else f"{_numbers(good)} would work"
            )
            raise RequestError(
                f"the power split {_numbers(self.split)} can never be decoded: segment {segment} "
                f"drowns in {drowns}; {works}"
            )

    @property
    def rates(self) -> Floats:
        """The rate of each message."""
        return np.asarray(self.spectral_efficiencies)

    @property
    def margins(self) -> Floats:
        """a_i / P: a message's power minus the interference that it can bear."""
        return np.asarray(
            self._shares - sinr_target(self.spectral_efficiencies) * self.interference
        )

    def thresholds(self, noise_to_power: float | Floats) -> Floats:
        """The gain each message needs, given c / P; non-decreasing.

        For a column of c / P, one row of thresholds each.
        """
        ratio = np.asarray(noise_to_power)[..., None]
        needed = ratio * sinr_target(self.spectral_efficiencies) / self.margins
        nested: Floats = np.maximum.accumulate(needed, axis=-1)
        return nested

    def sinr(self, snr: Floats) -> Floats:
        """[..., message]: signal over interference and noise, at g P / c, once those before it
        are cancelled.
        """
        snr = np.asarray(snr)[..., None]
        return np.asarray(snr * self._shares / (1 + snr * self.interference))

    def durations_s(self, bits: Sequence[float], bandwidth_hz: float) -> tuple[float, float]:
        """Duration of the signal, and the time in which full power would spend its energy."""
        longest = max(
            size / (rate * bandwidth_hz)
            for size, rate in zip(bits, self.spectral_efficiencies, strict=True)
        )
        return longest, longest

    @property
    def _shares(self) -> Floats:
        return np.asarray(self.split)

    @property
    def interference(self) -> Floats:
        """The power that interferes with every message."""
        shares = self._shares
        after = shares[::-1].cumsum()[::-1] - shares
        if not self.residual:
            return np.asarray(after)
        return np.asarray(after + self.residual * (shares.cumsum() - shares))


def single(spectral_efficiency: float) -> Superposition:
    """One message with all the power: Vanilla FL."""
    return Superposition((spectral_efficiency,), (1.0,))


def check_shares(rates: Sequence[float], split: Sequence[float]) -> None:
    """Refuse shares that do not fit the messages, including NaN."""
    if len(split) != len(rates):
        raise RequestError(
            f"the split has {len(split)} shares for {len(rates)} segments; "
            "give one share per segment"
        )
    if not all(share > 0 for share in split) or not abs(sum(split) - 1) <= 1e-6:
        raise RequestError(f"the power split {_numbers(split)} must be positive and sum to 1")
    if not all(rate > 0 for rate in rates):
        raise RequestError(f"the rates {_numbers(rates)} must be positive numbers of bit/s/Hz")


def _numbers(split: Sequence[float]) -> str:
    return ", ".join(f"{share:.15g}" for share in split)
