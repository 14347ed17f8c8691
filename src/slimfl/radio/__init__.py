"""What arrives at the server: fading, power split, thresholds, decoding, bits and energy.

The radio carries segments of a given size and knows nothing of models, so it is useful by itself:

>>> from slimfl import radio
>>> both = radio.Superposition((1.5, 1.5), (0.8, 0.2))
>>> for fading in (radio.Rayleigh(), radio.Rician(k=4), radio.Nakagami(m=3)):
...     print(fading.survival(both.thresholds(0.05)).round(3))
[0.81  0.633]
[0.949 0.816]
[0.974 0.84 ]

In the order of a round: `signals` puts segments into messages, at the rates and powers of `coding`
and `splits`; `fading` and `path_loss` give a link its gain; a decoder of `decoders` says what
arrives; `ledger` counts what it cost. `channel` is the interface of all that, `outage` the paper's
channel and `link` one device on it. `adaptive`, `pairs`, `selective`, `moving`, `downlink` and
`waveform` are what differs in more; `bound`, `gain` and `preference` are what theory says.
"""

from slimfl.radio.build import build_channel as build_channel
from slimfl.radio.channel import Channel as Channel
from slimfl.radio.channel import Links as Links
from slimfl.radio.channel import Messages as Messages
from slimfl.radio.channel import Payload as Payload
from slimfl.radio.channel import Receptions as Receptions
from slimfl.radio.channel import Signal as Signal
from slimfl.radio.coding import Coding as Coding
from slimfl.radio.coding import Superposition as Superposition
from slimfl.radio.coding import single as single
from slimfl.radio.coding import sinr_target as sinr_target
from slimfl.radio.downlink import heard as heard
from slimfl.radio.downlink import heard_probabilities as heard_probabilities
from slimfl.radio.fading import Nakagami as Nakagami
from slimfl.radio.fading import Rayleigh as Rayleigh
from slimfl.radio.fading import Rician as Rician
from slimfl.radio.ledger import paper_network_sizes as paper_network_sizes
from slimfl.radio.ledger import radio_cost as radio_cost
from slimfl.radio.ledger import segment_bits as segment_bits
from slimfl.radio.link import OutageLink as OutageLink
from slimfl.radio.link import decoding_frequencies as decoding_frequencies
from slimfl.radio.link import noise_to_power as noise_to_power
from slimfl.radio.link import outage_link as outage_link
from slimfl.radio.link import possible_links as possible_links
from slimfl.radio.link import probabilities_over_noise as probabilities_over_noise
from slimfl.radio.link import section_probabilities as section_probabilities
from slimfl.radio.outage import OutageChannel as OutageChannel
from slimfl.radio.outage import outage_channel as outage_channel
from slimfl.radio.signals import SignalMaker as SignalMaker
from slimfl.radio.signals import build_coding as build_coding
from slimfl.radio.signals import oddities as oddities
from slimfl.radio.signals import power_split as power_split
from slimfl.radio.signals import segment_rates as segment_rates
from slimfl.radio.signals import signal as signal
from slimfl.radio.splits import GainBelief as GainBelief
from slimfl.radio.splits import best_split as best_split
from slimfl.radio.splits import inverse_probability_sum as inverse_probability_sum
from slimfl.radio.splits import optimal_split as optimal_split
from slimfl.radio.splits import optimal_split_numeric as optimal_split_numeric
from slimfl.units import from_db as from_db
from slimfl.units import to_db as to_db
from slimfl.units import watt as watt
