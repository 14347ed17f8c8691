"""What a round costs on the air: bits, airtime, energy, and the paper's own accounting."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slimfl.config import RadioSection
from slimfl.radio.signals import Signal
from slimfl.radio.units import watt

#: Table IV: bits of a 1.0x model a round; the paper counts every segment as an equal part of it.
PAPER_MODEL_BITS = 172_688


def segment_bits(section: RadioSection, sizes: Sequence[int]) -> NDArray[np.float64]:
    """The bits of every segment, from its parameters or as the paper accounts for them (E4)."""
    if section.accounting == "paper":
        return np.full(len(sizes), PAPER_MODEL_BITS / len(sizes))
    return np.asarray(sizes, dtype=np.float64) * section.bits_per_parameter


@dataclass(frozen=True)
class RadioCost:
    """One round, summed over the devices that sent."""

    bits_sent: list[float]
    """Per segment."""
    bits_decoded: list[float]
    bits_dropped: list[float]
    airtime_s: float
    energy_j: float
    paper_power_mw: float
    """Table V's communication cost: the transmit power of one device, whatever its airtime."""


def radio_cost(
    section: RadioSection,
    bits: NDArray[np.float64],
    uploads: Sequence[tuple[Signal, int]],
) -> RadioCost:
    """The cost of uploads, each a signal and how many of its messages were decoded.

    A signal lasts until its longest message is through and has the full power for that time.
    """
    sent, decoded = np.zeros(len(bits)), np.zeros(len(bits))
    airtime_s = 0.0
    for upload, messages_decoded in uploads:
        on_air = [s for message in upload.messages for s in message]
        sent[on_air] += bits[on_air]
        arrived = list(upload.segments_decoded(messages_decoded))
        decoded[arrived] += bits[arrived]
        rates_bps = np.asarray(upload.coding.spectral_efficiencies) * section.bandwidth_hz
        airtime_s += float((upload.message_bits(bits) / rates_bps).max())
    power_w = watt(section.power_dbm)
    return RadioCost(
        bits_sent=sent.tolist(),
        bits_decoded=decoded.tolist(),
        bits_dropped=(sent - decoded).tolist(),
        airtime_s=airtime_s,
        energy_j=power_w * airtime_s,
        paper_power_mw=1000 * power_w if uploads else 0.0,
    )
