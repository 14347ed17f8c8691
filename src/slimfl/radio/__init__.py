"""What arrives at the server: fading, power split, thresholds, decoding, bits and energy.

The radio carries segments with a size and knows nothing of models.
"""

from slimfl.radio.channel import (
    Channel,
    OutageChannel,
    channel,
    decoding_frequencies,
    noise_to_power,
)
from slimfl.radio.fading import FADING, Fading, Gains, Rayleigh
from slimfl.radio.ledger import PAPER_MODEL_BITS, RadioCost, radio_cost, segment_bits
from slimfl.radio.power import optimal_split, optimal_split_numeric
from slimfl.radio.signals import Messages, Signal, power_split, segment_rates, signal
from slimfl.radio.superposition import Superposition, single, sinr_target
from slimfl.radio.units import watt

__all__ = [
    "FADING",
    "PAPER_MODEL_BITS",
    "Channel",
    "Fading",
    "Gains",
    "Messages",
    "OutageChannel",
    "RadioCost",
    "Rayleigh",
    "Signal",
    "Superposition",
    "channel",
    "decoding_frequencies",
    "noise_to_power",
    "optimal_split",
    "optimal_split_numeric",
    "power_split",
    "radio_cost",
    "segment_bits",
    "segment_rates",
    "signal",
    "single",
    "sinr_target",
    "watt",
]
