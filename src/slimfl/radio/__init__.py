"""What arrives at the server: fading, power split, thresholds, decoding, bits and energy.

The radio carries segments of a given size and knows nothing of models, so it is useful by itself:

>>> from slimfl import radio
>>> both = radio.Superposition((1.5, 1.5), (0.8, 0.2))
>>> for fading in (radio.Rayleigh(), radio.Rician(k=4), radio.Nakagami(m=3)):
...     print(radio.OutageLink(0.05, fading).decoding_probabilities(both).round(3))
[0.81  0.633]
[0.949 0.816]
[0.974 0.84 ]
"""

from slimfl.radio.attempts import Attempts
from slimfl.radio.best_split import best_split
from slimfl.radio.build import build_channel
from slimfl.radio.channel import Channel
from slimfl.radio.coding import Coding
from slimfl.radio.decoders import (
    Decoder,
    Gap,
    NormalApproximation,
    Outage,
    Table,
    build_decoder,
    fitted_loss_db,
)
from slimfl.radio.downlink import heard, heard_probabilities
from slimfl.radio.fading import (
    FADING,
    Autoregressive,
    Fading,
    FadingProcess,
    Gains,
    GaussianFading,
    Jakes,
    Nakagami,
    NoFading,
    Rayleigh,
    Rician,
    Shadowed,
    TappedDelayLine,
    build_fading,
    build_process,
    build_profile,
    doppler_correlation,
    doppler_hz,
)
from slimfl.radio.gain_belief import GainBelief
from slimfl.radio.ledger import (
    PAPER_MODEL_BITS,
    Ledger,
    RadioCost,
    paper_network_sizes,
    segment_bits,
)
from slimfl.radio.link import (
    OutageLink,
    decoding_frequencies,
    noise_to_power,
    outage_link,
    possible_links,
    probabilities_over_noise,
    section_probabilities,
)
from slimfl.radio.links import Links, Payload, Receptions
from slimfl.radio.motion import MovingChannel
from slimfl.radio.noise import noise_power_dbm
from slimfl.radio.noma import decode_pairs, pair_probabilities, two_device_probabilities
from slimfl.radio.objectives import OBJECTIVES, Objective, inverse_probability_sum
from slimfl.radio.orthogonal import InTurnAtLowerPower, InTurnInShorterTime
from slimfl.radio.outage import OutageChannel, outage_channel
from slimfl.radio.paired import PairedChannel
from slimfl.radio.path_loss import (
    SCENARIOS,
    FreeSpace,
    PathLoss,
    PowerLaw,
    Urban,
    build_path_loss,
)
from slimfl.radio.power import optimal_split, optimal_split_numeric, split_of_margins
from slimfl.radio.selective import SelectiveChannel, SelectiveLink
from slimfl.radio.signal_maker import SignalMaker
from slimfl.radio.signals import (
    Messages,
    Signal,
    coding,
    oddities,
    power_split,
    segment_rates,
    signal,
)
from slimfl.radio.superposition import Superposition, single, sinr_target
from slimfl.radio.units import from_db, to_db, watt

__all__ = [
    "FADING",
    "OBJECTIVES",
    "PAPER_MODEL_BITS",
    "SCENARIOS",
    "Attempts",
    "Autoregressive",
    "Channel",
    "Coding",
    "Decoder",
    "Fading",
    "FadingProcess",
    "FreeSpace",
    "GainBelief",
    "Gains",
    "Gap",
    "GaussianFading",
    "InTurnAtLowerPower",
    "InTurnInShorterTime",
    "Jakes",
    "Ledger",
    "Links",
    "Messages",
    "MovingChannel",
    "Nakagami",
    "NoFading",
    "NormalApproximation",
    "Objective",
    "Outage",
    "OutageChannel",
    "OutageLink",
    "PairedChannel",
    "PathLoss",
    "Payload",
    "PowerLaw",
    "RadioCost",
    "Rayleigh",
    "Receptions",
    "Rician",
    "SelectiveChannel",
    "SelectiveLink",
    "Shadowed",
    "Signal",
    "SignalMaker",
    "Superposition",
    "Table",
    "TappedDelayLine",
    "Urban",
    "best_split",
    "build_channel",
    "build_decoder",
    "build_fading",
    "build_path_loss",
    "build_process",
    "build_profile",
    "coding",
    "decode_pairs",
    "decoding_frequencies",
    "doppler_correlation",
    "doppler_hz",
    "fitted_loss_db",
    "from_db",
    "heard",
    "heard_probabilities",
    "inverse_probability_sum",
    "noise_power_dbm",
    "noise_to_power",
    "oddities",
    "optimal_split",
    "optimal_split_numeric",
    "outage_channel",
    "outage_link",
    "pair_probabilities",
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
    "split_of_margins",
    "to_db",
    "two_device_probabilities",
    "watt",
]
