"""What a round costs on the air: bits, airtime, energy, and the paper's own accounting.

The channel reports airtime and energy of every upload; the ledger adds them up.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from slimfl.experiment import EnergySection, RadioSection
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


def with_supply(section: EnergySection, receptions: Receptions) -> Receptions:
    """Receptions with the energy that the supply gives: E = (P / eta + P_circuit) t."""
    if section.amplifier_efficiency == 1 and section.circuit_power_w == 0:
        return receptions
    radiated = receptions.energy_j / section.amplifier_efficiency
    return replace(receptions, energy_j=radiated + section.circuit_power_w * receptions.airtime_s)


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


class Ledger:
    """Adds up the uploads of a round."""

    def __init__(self, segments: int) -> None:
        self.sent, self.decoded = np.zeros(segments), np.zeros(segments)
        self.airtime_s = 0.0
        self.at_full_power_s: dict[float, float] = {}
        """Airtime by transmit power in dBm, for uploads at constant power."""
        self.other_energy_j = 0.0
        self.powers_dbm: Counter[float] = Counter()
        self._masks: dict[tuple[int, int], NDArray[np.float64]] = {}

    def add(self, links: Links, signals: Sequence[Signal], receptions: Receptions) -> None:
        """Add the uploads of some devices.

        Args:
            links: One row per device.
            signals: What each of them sent.
            receptions: What the server got of it.
        """
        for sent, decoded in zip(signals, receptions.decoded.tolist(), strict=True):
            self.sent += self._bits(sent, len(sent.messages))
            self.decoded += self._bits(sent, decoded)
        for power_dbm, airtime_s, counted_s, energy_j in zip(
            links.power_dbm.tolist(),
            receptions.airtime_s.tolist(),
            receptions.counted_s.tolist(),
            receptions.energy_j.tolist(),
            strict=True,
        ):
            self.powers_dbm[power_dbm] += 1
            self.airtime_s += counted_s
            # multiply equal powers once, at the end: one rounding instead of one per device
            if energy_j == airtime_s * watt(power_dbm):
                before = self.at_full_power_s.get(power_dbm, 0.0)
                self.at_full_power_s[power_dbm] = before + airtime_s
            else:
                self.other_energy_j += energy_j

    def _bits(self, sent: Signal, messages: int) -> NDArray[np.float64]:
        """The bits of every segment in the first messages of a signal."""
        key = (id(sent), messages)  # hashing a signal is slower than taking its id
        if key not in self._masks:
            bits = np.zeros(len(self.sent))
            where = list(sent.segments_decoded(messages))
            bits[where] = np.asarray(sent.segment_bits)[where]
            self._masks[key] = bits
        return self._masks[key]

    def total(self) -> RadioCost:
        """The sums."""
        return RadioCost(
            bits_sent=self.sent.tolist(),
            bits_decoded=self.decoded.tolist(),
            bits_dropped=(self.sent - self.decoded).tolist(),
            airtime_s=self.airtime_s,
            energy_j=self._energy_j(),
            paper_power_mw=self._mean_power_mw(),
        )

    def _energy_j(self) -> float:
        full = (watt(dbm) * seconds for dbm, seconds in self.at_full_power_s.items())
        return sum(full, self.other_energy_j)

    def _mean_power_mw(self) -> float:
        """The mean over devices; exact if all send at the same power."""
        counts = {1000 * watt(dbm): count for dbm, count in self.powers_dbm.items()}
        if len(counts) < 2:
            return next(iter(counts), 0.0)
        return sum(mw * count for mw, count in counts.items()) / self.powers_dbm.total()
