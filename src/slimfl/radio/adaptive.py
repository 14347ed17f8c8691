"""The paper's channel with rates that follow the gain: every signal arrives, some later.

A device knows its gain and sends message i at the highest rate that the receiver can decode,

    W log2(1 + g P_i / (g (P_{i+1} + ... + P_S + r (P_1 + ... + P_{i-1})) + c)),

with r the residual interference of cancelled messages, so there is no outage; a device with a poor
gain is slow instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slimfl.devices import Population
from slimfl.radio.channel import Links, Payload, Receptions, Signal
from slimfl.radio.coding import Floats, Superposition
from slimfl.radio.outage import OutageChannel, alike
from slimfl.units import watt

#: Upper limit of an upload, however small the gain: a year.
LONGEST_S = 3.2e7


@dataclass(frozen=True)
class AdaptiveChannel(OutageChannel):
    """Fading gains that decide how long a signal takes instead of whether it arrives."""

    def receive(
        self, links: Links, signals: Sequence[Signal], payloads: Sequence[Payload] | None
    ) -> Receptions:
        """All messages of every device."""
        decoded = np.zeros(len(links), np.int64)
        airtime_s = np.zeros(len(links))
        for sent, rows in alike(signals):
            decoded[rows] = len(sent.messages)
            rates = rates_hz(sent, links.gains[rows], links.noise_to_power[rows])
            bits = np.asarray(sent.message_bits)
            with np.errstate(divide="ignore"):
                airtime_s[rows] = (bits / (self.bandwidth_hz * rates)).max(axis=1)
        airtime_s = np.minimum(airtime_s, LONGEST_S)
        energy_j = airtime_s * watt(links.power_dbm)
        return Receptions(decoded, np.ones_like(decoded), airtime_s, energy_j)

    def probabilities(self, devices: Population, signal: Signal) -> Floats:
        """Everything is decoded."""
        return np.ones((len(devices), len(signal.messages)))


def rates_hz(sent: Signal, gains: Floats, noise_to_power: Floats) -> Floats:
    """[device, message]: the spectral efficiency in bit/s/Hz that each gain supports.

    Args:
        sent: What the devices send.
        gains: [device].
        noise_to_power: [device] c / P.
    """
    coding = sent.coding
    assert isinstance(coding, Superposition)  # the section refuses others
    split, gains, noise = np.asarray(coding.split), gains[:, None], noise_to_power[:, None]
    return np.asarray(np.log2(1 + gains * split / (gains * coding.interference + noise)))
