"""How messages share one upload: superposed, as in section IV of the paper, or one after the other.

**Superposition.** Messages 1..S share one signal. Message i has the share P_i of the power and the
spectral efficiency u_i/W. The receiver decodes them in order and treats later ones as interference.
So with u'_i = 2^(u_i/W) - 1 and c = sigma^2 d^beta, message i needs the gain

    g >= c u'_i / a_i,    a_i = P_i - u'_i (P_{i+1} + ... + P_S),

and is decoded when this holds for messages 1..i: equation (5), a running maximum. With imperfect
cancellation, the share r of the power of every decoded message remains as interference, and
a_i = P_i - u'_i (P_{i+1} + ... + P_S + r (P_1 + ... + P_{i-1})).

**In turn**, the alternative that superposition is compared with. Messages do not interfere with
each other, and the split divides one of two resources:

* the power (`InTurnAtLowerPower`): message i has the share P_i of the power, at its usual rate. The
  airtime is longer. The energy is that of the superposed signal if all messages take equally long,
  and less otherwise, because no message lasts as long as the longest.
* the airtime (`InTurnInShorterTime`): message i has full power in the share P_i of the time that
  the superposed signal would take, so its rate is higher. Airtime and energy are the same.

Here too a message counts only if those before it are decoded.
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
class Coding:
    """Messages, their rates, and their shares of the power or of the time."""

    spectral_efficiencies: tuple[float, ...]
    """u/W of every message in bit/s/Hz."""
    split: tuple[float, ...]
    """The share of the power, or of the time, of every message."""

    def __post_init__(self) -> None:
        rates, split = self.spectral_efficiencies, self.split
        if len(split) != len(rates):
            raise RequestError(
                f"the split has {len(split)} shares for {len(rates)} segments; "
                "give one share per segment"
            )
        # NaN fails these comparisons too
        if not all(share > 0 for share in split) or not abs(sum(split) - 1) <= 1e-6:
            raise RequestError(f"the power split {_numbers(split)} must be positive and sum to 1")
        if not all(rate > 0 for rate in rates):
            raise RequestError(f"the rates {_numbers(rates)} must be positive numbers of bit/s/Hz")

    @property
    def rates(self) -> Floats:
        """[message]: the rate while it is on the air, in bit/s/Hz."""
        return np.asarray(self.spectral_efficiencies)

    @property
    def powers(self) -> Floats:
        """[message]: its share of the transmit power while it is on the air."""
        return np.asarray(self.split)

    @property
    def interference(self) -> Floats:
        """[message]: the share of the power that interferes with it."""
        return np.zeros(len(self.split))

    def margins(self, gap: float = 1.0) -> Floats:
        """[message]: a_i, its power minus the interference that it can bear."""
        return self.powers

    def thresholds(self, noise_to_power: float | Floats, gap: float = 1.0) -> Floats:
        """[..., message]: equation (5), the gain that a message and all before it need.

        Args:
            noise_to_power: [...] c / P.
            gap: The factor by which a message needs a higher ratio than u'; infinity is needed
                where no gain suffices.
        """
        ratio = np.asarray(noise_to_power)[..., None]
        with np.errstate(divide="ignore"):
            needed = ratio * (gap * sinr_target(self.rates)) / np.maximum(self.margins(gap), 0)
        return np.asarray(np.maximum.accumulate(needed, axis=-1))

    def sinr(self, snr: Floats) -> Floats:
        """[..., message]: signal over interference and noise, once those before it are decoded.

        Args:
            snr: [...] the signal-to-noise ratio g P/c of the whole signal.
        """
        snr = np.asarray(snr)[..., None]
        return np.asarray(snr * self.powers / (1 + snr * self.interference))

    def durations_s(self, bits: Sequence[float], bandwidth_hz: float) -> tuple[float, float]:
        """Duration of the signal, and the time in which full power would spend its energy.

        Args:
            bits: [message].
            bandwidth_hz: W.
        """
        longest = max(self._seconds(bits, bandwidth_hz))
        return longest, longest

    def _seconds(self, bits: Sequence[float], bandwidth_hz: float) -> list[float]:
        """The time of every message at its usual rate."""
        return [
            size / (rate * bandwidth_hz)
            for size, rate in zip(bits, self.spectral_efficiencies, strict=True)
        ]


@dataclass(frozen=True)
class Superposition(Coding):
    """Messages in one signal: their rates and their shares of the transmit power."""

    residual: float = 0.0
    """Share of a cancelled message's power that still interferes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.residual <= 1:
            raise RequestError(
                f"the residual interference must be from 0 to 1, not {self.residual:g}"
            )
        margins = self.margins()
        if not (margins > 0).all():
            from slimfl.radio.splits import rounded_split  # which imports this module

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
    def interference(self) -> Floats:
        """[message]: later messages, and what is left of cancelled ones."""
        return interference(np.asarray(self.split), self.residual)

    def margins(self, gap: float = 1.0) -> Floats:
        """[message]: a_i."""
        return np.asarray(self.powers - gap * sinr_target(self.rates) * self.interference)


def interference(shares: Floats, residual: float) -> Floats:
    """[message]: the power that is not cancelled when it is decoded, beside its own."""
    after = shares[::-1].cumsum()[::-1] - shares
    if not residual:
        return np.asarray(after)
    return np.asarray(after + residual * (shares.cumsum() - shares))


def single(spectral_efficiency: float) -> Superposition:
    """One message with all the power: Vanilla FL."""
    return Superposition((spectral_efficiency,), (1.0,))


@dataclass(frozen=True)
class InTurnAtLowerPower(Coding):
    """Message i at its own rate, with its share of the power; at most superposition's energy."""

    def durations_s(self, bits: Sequence[float], bandwidth_hz: float) -> tuple[float, float]:
        """The times of all messages; each has its share of the power."""
        seconds = self._seconds(bits, bandwidth_hz)
        return sum(seconds), sum(map(float.__mul__, seconds, self.split))


@dataclass(frozen=True)
class InTurnInShorterTime(Coding):
    """Message i with full power in its share of the time; the airtime of superposition.

    `spectral_efficiencies` are the rates of the superposed signal that this one is compared with.
    """

    bits: tuple[float, ...] = ()
    """Bits of every message; by default proportional to the rates."""

    @property
    def rates(self) -> Floats:
        """[message]: the rate within its share of the time."""
        usual = np.asarray(self.spectral_efficiencies)
        if self.bits:
            usual = np.asarray(self.bits) / (np.asarray(self.bits) / usual).max()
        return np.asarray(usual / np.asarray(self.split))

    @property
    def powers(self) -> Floats:
        """[message]: all of the power."""
        return np.ones(len(self.split))


def _numbers(split: Sequence[float]) -> str:
    return ", ".join(f"{share:.15g}" for share in split)
