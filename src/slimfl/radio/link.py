"""One radio link by itself: fading, thresholds, and the decoding probabilities of equation (5).

For calculations and for theory, where all devices have the same link. In a federation a `Channel`
generates the links of every round and receives over them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slimfl.config import RadioSection
from slimfl.radio.fading import FADING, Fading, Gains
from slimfl.radio.superposition import Floats, Superposition
from slimfl.radio.units import from_db


@dataclass(frozen=True)
class OutageLink:
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
    link: OutageLink, signal: Superposition, draws: int, seed: int = 0
) -> NDArray[np.float64]:
    """How often message i was decoded among the draws: the simulated side of equation (5)."""
    at_least = np.zeros(len(signal.split) + 1)
    chunk = 1 << 16  # stays in the cache
    for number, start in enumerate(range(0, draws, chunk)):
        gains = link.gains(seed, number, min(chunk, draws - start))
        at_least += np.bincount(link.decoded(signal, gains), minlength=len(at_least))
    return at_least[::-1].cumsum()[::-1][1:] / draws


def noise_to_power(section: RadioSection) -> float:
    """c / P: noise power times path loss over transmit power."""
    path_loss: float = section.distance_m**section.path_loss_exponent
    margin_db = section.noise + section.implementation_loss_db - section.power_dbm
    return from_db(margin_db) * path_loss


def outage_link(section: RadioSection) -> OutageLink:
    """The link that the `radio` section describes, the same for all devices."""
    return OutageLink(noise_to_power(section), FADING[section.fading]())
