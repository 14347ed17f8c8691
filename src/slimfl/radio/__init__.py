"""What arrives at the server: fading, power split, thresholds, decoding, bits and energy.

The radio carries segments of a given size and knows nothing of models, so it is useful by itself:

>>> from slimfl import radio
>>> both = radio.Superposition((1.5, 1.5), (0.8, 0.2))
>>> for fading in (radio.Rayleigh(), radio.Rician(k=4), radio.Nakagami(m=3)):
...     print(fading.survival(both.thresholds(0.05)).round(3))
[0.81  0.633]
[0.949 0.816]
[0.974 0.84 ]

`channel` has the interface of channels, `outage` the paper's and `coding` its superposition;
`splits` has the splits of the power, `bound`, `gain` and `preference` what theory says of a link.
"""

from slimfl.radio.build import build_channel
from slimfl.radio.channel import Channel, Links, Messages, Payload, Receptions, Signal
from slimfl.radio.coding import Coding, Superposition, single, sinr_target
from slimfl.radio.downlink import heard, heard_probabilities
from slimfl.radio.fading import Nakagami, Rayleigh, Rician
from slimfl.radio.ledger import Ledger, paper_network_sizes, segment_bits
from slimfl.radio.link import (
    OutageLink,
    decoding_frequencies,
    noise_to_power,
    outage_link,
    possible_links,
    probabilities_over_noise,
    section_probabilities,
)
from slimfl.radio.outage import OutageChannel, outage_channel
from slimfl.radio.signals import (
    SignalMaker,
    build_coding,
    oddities,
    power_split,
    segment_rates,
    signal,
)
from slimfl.radio.splits import (
    GainBelief,
    best_split,
    inverse_probability_sum,
    optimal_split,
    optimal_split_numeric,
)
from slimfl.units import from_db, to_db, watt

__all__ = [
    "Channel",
    "Coding",
    "GainBelief",
    "Ledger",
    "Links",
    "Messages",
    "Nakagami",
    "OutageChannel",
    "OutageLink",
    "Payload",
    "Rayleigh",
    "Receptions",
    "Rician",
    "Signal",
    "SignalMaker",
    "Superposition",
    "best_split",
    "build_channel",
    "build_coding",
    "decoding_frequencies",
    "from_db",
    "heard",
    "heard_probabilities",
    "inverse_probability_sum",
    "noise_to_power",
    "oddities",
    "optimal_split",
    "optimal_split_numeric",
    "outage_channel",
    "outage_link",
    "paper_network_sizes",
    "possible_links",
    "power_split",
    "probabilities_over_noise",
    "section_probabilities",
    "segment_bits",
    "segment_rates",
    "signal",
    "single",
    "sinr_target",
    "to_db",
    "watt",
]
