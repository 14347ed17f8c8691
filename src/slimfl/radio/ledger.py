"""What a round costs on the air: bits, airtime, energy, and the paper's own accounting.

The channel reports airtime and energy of every upload; here they are added up.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slimfl.experiment import RadioSection
from slimfl.radio.channel import Links, Receptions, Signal
from slimfl.units import watt

#: Table IV: bits of a 1.0x model per round; the paper counts every segment as an equal part of it.
PAPER_MODEL_BITS = 172_688


def segment_bits(section: RadioSection, sizes: Sequence[int]) -> NDArray[np.float64]:
    """The bits of every segment, from its parameters or as the paper accounts for them (E4)."""
    if section.accounting == "paper":
        return np.full(len(sizes), PAPER_MODEL_BITS / len(sizes))
    return np.asarray(sizes, dtype=np.float64) * section.bits_per_parameter


def paper_network_sizes(widths: Sequence[float]) -> list[int]:
    """Parameters per segment of UL-MobileNet for grey images of ten classes, without building it.

    >>> paper_network_sizes((0.5, 1.0))
    [1530, 3056]
    """
    sizes = []
    for width in widths:
        first, last = (max(1, math.ceil(n * width - 1e-9)) for n in (32, 64))
        stem_and_depthwise, pointwise = 27 * first, first * (first + last)
        sizes.append(stem_and_depthwise + pointwise + 10 * last + 10)
    return [size - before for before, size in zip((0, *sizes), sizes, strict=False)]


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
    links: Links, signals: Sequence[Signal], receptions: Receptions, segments: int
) -> RadioCost:
    """What a round cost on the air, given what arrived of each device's signal.

    Args:
        links: One row per device.
        signals: What each of them sent.
        receptions: What the server got of it.
        segments: Number of segments of the network.
    """
    bits: dict[tuple[int, int], NDArray[np.float64]] = {}

    def bits_of(signal: Signal, messages: int) -> NDArray[np.float64]:
        """The bits of every segment in the first messages of a signal."""
        key = (id(signal), messages)  # hashing a signal is slower than taking its id
        if key not in bits:
            bits[key] = np.zeros(segments)
            where = list(signal.segments_decoded(messages))
            bits[key][where] = np.asarray(signal.segment_bits)[where]
        return bits[key]

    sent, decoded = np.zeros(segments), np.zeros(segments)
    for signal, count in zip(signals, receptions.decoded.tolist(), strict=True):
        sent += bits_of(signal, len(signal.messages))
        decoded += bits_of(signal, count)
    powers_dbm: list[float] = links.power_dbm.tolist()
    counts, watts = Counter(powers_dbm), {dbm: watt(dbm) for dbm in powers_dbm}
    at_full_power_s, other_energy_j, total_airtime_s = dict.fromkeys(counts, 0.0), 0.0, 0.0
    for power_dbm, airtime_s, counted_s, energy_j in zip(
        powers_dbm,
        receptions.airtime_s.tolist(),
        receptions.counted_s.tolist(),
        receptions.energy_j.tolist(),
        strict=True,
    ):
        total_airtime_s += counted_s
        # multiply equal powers once, at the end: one rounding instead of one per device
        if energy_j == airtime_s * watts[power_dbm]:
            at_full_power_s[power_dbm] += airtime_s
        else:
            other_energy_j += energy_j
    full_j = (watts[dbm] * seconds for dbm, seconds in at_full_power_s.items())
    powers_mw = [1000 * watts[dbm] for dbm in counts]
    if len(counts) > 1:  # the mean over devices; exact if all send at the same power
        total_mw = sum(mw * count for mw, count in zip(powers_mw, counts.values(), strict=True))
        powers_mw = [total_mw / len(powers_dbm)]
    return RadioCost(
        bits_sent=sent.tolist(),
        bits_decoded=decoded.tolist(),
        bits_dropped=(sent - decoded).tolist(),
        airtime_s=total_airtime_s,
        energy_j=sum(full_j, other_energy_j),
        paper_power_mw=powers_mw[0] if powers_mw else 0.0,
    )
