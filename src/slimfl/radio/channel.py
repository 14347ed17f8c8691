"""The radio link between a device and the server: what arrives, and with which probability.

This is where richer channels go. A channel is whatever has `gains`, `decoded` and
`decoding_probabilities`; the outage channel below compares a fading gain with thresholds.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from slimfl.config import OWN, RadioSection
from slimfl.errors import RequestError
from slimfl.radio.fading import FADING, Fading, Gains
from slimfl.radio.superposition import Floats, Superposition
from slimfl.radio.units import from_db


class Channel(Protocol):
    """The uplink of every device; channels of different devices are orthogonal."""

    def gains(self, seed: int, round: int, devices: int) -> Gains:
        """The power gains of all devices in a round."""

    def decoded(self, signal: Superposition, gains: Gains) -> NDArray[np.uint8]:
        """For every gain, how many of the signal's messages are decoded in succession."""

    def decoding_probabilities(self, signal: Superposition) -> Floats:
        """The probability that message i and all before it are decoded: equation (5)."""


@dataclass(frozen=True)
class OutageChannel:
    """Block fading with Shannon thresholds: decoding works exactly when the gain suffices."""

    noise_to_power: float
    """c / P = sigma^2 d^beta / P, including any implementation loss."""
    fading: Fading

    def gains(self, seed: int, round: int, devices: int) -> Gains:
        """The fading gains of all devices in a round."""
        return self.fading.gains(seed, round, devices)

    def decoded(self, signal: Superposition, gains: Gains) -> NDArray[np.uint8]:
        """Thresholds are nested, so the number decoded is the number of thresholds reached."""
        thresholds = signal.thresholds(self.noise_to_power)
        count = np.zeros(gains.shape, np.uint8)
        for threshold in thresholds:
            count += gains >= threshold
        return count

    def decoding_probabilities(self, signal: Superposition) -> Floats:
        """Equation (5)."""
        return self.fading.survival(signal.thresholds(self.noise_to_power))


def decoding_frequencies(
    channel: Channel, signal: Superposition, draws: int, seed: int = 0
) -> NDArray[np.float64]:
    """How often message i was decoded in so many draws: the simulated side of equation (5)."""
    at_least = np.zeros(len(signal.split) + 1)
    chunk = 1 << 16  # stays in the cache
    for number, start in enumerate(range(0, draws, chunk)):
        gains = channel.gains(seed, number, min(chunk, draws - start))
        at_least += np.bincount(channel.decoded(signal, gains), minlength=len(at_least))
    return at_least[::-1].cumsum()[::-1][1:] / draws


def noise_to_power(section: RadioSection) -> float:
    """c / P: noise power times path loss over transmit power."""
    path_loss: float = section.distance_m**section.path_loss_exponent
    margin_db = section.noise + section.implementation_loss_db - section.power_dbm
    return from_db(margin_db) * path_loss


def channel(section: RadioSection) -> OutageChannel:
    """The channel that the `radio` section describes."""
    if section.fading == OWN:
        raise RequestError(
            "the channel was an object of its author's: pass it again, "
            "slimfl.run(..., channel=...) or slimfl.resume(..., channel=...)"
        )
    return OutageChannel(noise_to_power(section), FADING[section.fading]())
