"""What a round costs on the air: bits, airtime, energy, and the paper's own accounting."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

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


class _UploadCost(NamedTuple):
    """One upload; `sent` and `decoded` are bits of every segment."""

    sent: NDArray[np.float64]
    decoded: NDArray[np.float64]
    airtime_s: float


def _upload_cost(
    section: RadioSection, bits: NDArray[np.float64], upload: Signal, messages_decoded: int
) -> _UploadCost:
    segments = np.arange(len(bits))
    on_air = np.isin(segments, upload.segments_decoded(len(upload.messages)))
    arrived = np.isin(segments, upload.segments_decoded(messages_decoded))
    rates_bps = np.asarray(upload.coding.spectral_efficiencies) * section.bandwidth_hz
    airtime_s = float((upload.message_bits(bits) / rates_bps).max())
    return _UploadCost(bits * on_air, bits * arrived, airtime_s)


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
    known: dict[tuple[int, int], _UploadCost] = {}
    for upload, messages_decoded in uploads:
        key = (id(upload), messages_decoded)  # a signal takes longer to hash than to look up
        if key not in known:
            known[key] = _upload_cost(section, bits, upload, messages_decoded)
        one = known[key]
        sent += one.sent
        decoded += one.decoded
        airtime_s += one.airtime_s
    power_w = watt(section.power_dbm)
    return RadioCost(
        bits_sent=sent.tolist(),
        bits_decoded=decoded.tolist(),
        bits_dropped=(sent - decoded).tolist(),
        airtime_s=airtime_s,
        energy_j=power_w * airtime_s,
        paper_power_mw=1000 * power_w if uploads else 0.0,
    )
