"""A downlink that may fail: which devices decode the global model at the beginning of a round.

The server broadcasts the whole model in one message at `downlink_spectral_efficiency` with
`downlink_power_dbm`. The noise and the path loss are those of the uplink. Fading is drawn anew,
because time passes between the two: as the uplink of a round that no run reaches, so that lines of
sight, and what the channel remembers, are those of the device.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from slimfl.devices import Population
from slimfl.experiment import RadioSection
from slimfl.radio.channel import Channel, Signal, State
from slimfl.radio.coding import Floats, single
from slimfl.radio.decoders import Outage
from slimfl.radio.outage import Attempts, OutageChannel

#: Added to the number of a round to name its downlink; more than a run has rounds.
DOWNLINK = 1_000_000_000


def heard(
    section: RadioSection,
    channel: Channel,
    state: State,
    round: int,
    devices: Population,
    seed: int,
) -> NDArray[np.bool_]:
    """[device]: whether it decodes the global model at the beginning of a round.

    Args:
        section: The radio.
        channel: Of the uplink.
        state: What the channel remembers; it stays as it is.
        round: Number of the round.
        devices: Those that listen.
        seed: The experiment's.
    """
    if section.downlink == "perfect":
        return np.ones(len(devices), np.bool_)
    links, _ = channel.links(state, DOWNLINK + round, _at_server_power(section, devices), seed)
    thresholds = single(section.downlink_spectral_efficiency).thresholds(links.noise_to_power)
    return np.asarray(links.gains >= thresholds[:, 0])


def heard_probabilities(
    section: RadioSection, channel: Channel, devices: Population
) -> Floats | None:
    """The probability to decode the global model; None where the channel has no formula."""
    if section.downlink == "perfect":
        return np.ones(len(devices))
    if type(channel) is not OutageChannel:  # those that extend it have other gains
        return None
    plain = replace(channel, decoder=Outage(), attempts=Attempts())
    whole = Signal(((0,),), single(section.downlink_spectral_efficiency))
    found = plain.probabilities(_at_server_power(section, devices), whole)
    return None if found is None else found[:, 0]


def _at_server_power(section: RadioSection, devices: Population) -> Population:
    power_dbm = np.broadcast_to(np.float64(section.downlink_power_dbm), len(devices))
    return replace(devices, power_dbm=power_dbm)
