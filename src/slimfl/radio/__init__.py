"""What arrives at the server: fading, power split, thresholds, decoding, bits and energy.

The radio carries segments with a size and knows nothing of models.
"""

from slimfl.radio.build import build_channel
from slimfl.radio.channel import Channel
from slimfl.radio.fading import FADING, Fading, Gains, Rayleigh
from slimfl.radio.ledger import PAPER_MODEL_BITS, Ledger, RadioCost, segment_bits
from slimfl.radio.link import OutageLink, decoding_frequencies, noise_to_power, outage_link
from slimfl.radio.links import Links, Payload, Receptions
from slimfl.radio.outage import OutageChannel, outage_channel
from slimfl.radio.power import optimal_split, optimal_split_numeric
from slimfl.radio.signal_maker import SignalMaker
from slimfl.radio.signals import Messages, Signal, power_split, segment_rates, signal
from slimfl.radio.superposition import Superposition, single, sinr_target
from slimfl.radio.units import watt

__all__ = [
    "FADING",
    "PAPER_MODEL_BITS",
    "Channel",
    "Fading",
    "Gains",
    "Ledger",
    "Links",
    "Messages",
    "OutageChannel",
    "OutageLink",
    "Payload",
    "RadioCost",
    "Rayleigh",
    "Receptions",
    "Signal",
    "SignalMaker",
    "Superposition",
    "build_channel",
    "decoding_frequencies",
    "noise_to_power",
    "optimal_split",
    "optimal_split_numeric",
    "outage_channel",
    "outage_link",
    "power_split",
    "segment_bits",
    "segment_rates",
    "signal",
    "single",
    "sinr_target",
    "watt",
]
