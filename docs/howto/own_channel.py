"""Two ways to bring a channel: another fading under the outage model, or a channel of one's own."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc

import slimfl
from slimfl.config import RadioSection
from slimfl.radio import OutageChannel, Superposition, decoding_frequencies, noise_to_power, signal
from slimfl.rng import generator

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Nakagami:
    """Fading of shape m: m = 1 is Rayleigh, a larger m varies less. The mean gain is 1."""

    m: float

    def gains(self, seed: int, round: int, devices: int) -> Floats:
        """A function of (seed, round, device), so that a resumed run meets the same channel."""
        return generator(seed, "fading", round).gamma(self.m, 1 / self.m, size=devices)

    def survival(self, threshold: Floats) -> Floats:
        """Pr(g >= threshold)."""
        return np.asarray(gammaincc(self.m, self.m * threshold))


@dataclass(frozen=True)
class Blocked:
    """Another channel whose link is now and then blocked: nothing arrives then."""

    inner: OutageChannel
    blocked_share: float

    def gains(self, seed: int, round: int, devices: int) -> Floats:
        """The inner channel's gains, some of them replaced by zero."""
        blocked = generator(seed, "blockage", round).random(devices) < self.blocked_share
        return np.where(blocked, 0.0, self.inner.gains(seed, round, devices))

    def decoded(self, signal: Superposition, gains: Floats) -> NDArray[np.uint8]:
        """A gain of zero reaches no threshold."""
        return self.inner.decoded(signal, gains)

    def decoding_probabilities(self, signal: Superposition) -> Floats:
        """Equation (5), times the chance of a free link."""
        return (1 - self.blocked_share) * self.inner.decoding_probabilities(signal)


def main() -> None:
    """Compare probabilities with draws on each channel, then run SlimFL over it."""
    section = RadioSection(channel="poor")
    sent = signal(section, messages=((0,), (1,)), segments=2)
    fading = OutageChannel(noise_to_power(section), Nakagami(m=3))
    for channel in (fading, Blocked(fading, blocked_share=0.1)):
        print("probabilities", channel.decoding_probabilities(sent.coding).round(3))
        print("frequencies  ", decoding_frequencies(channel, sent.coding, draws=100_000).round(3))
        run = slimfl.run(
            channel=channel,
            data__dataset="synthetic",
            rounds=5,
            training__steps=10,
            training__learning_rate=5e-3,
        )
        print("arrived of 10", [line["delivered"] for line in run.lines], run.final_accuracy)


if __name__ == "__main__":
    main()
