"""A rate that follows the gain: airtime against the Shannon formula, device by device."""

import math

import numpy as np
import pytest

from slimfl.config import RadioSection
from slimfl.population import Population
from slimfl.radio import signal
from slimfl.radio.adaptive import adaptive_channel
from slimfl.radio.outage import outage_channel

BITS = (40_000.0, 100_000.0)


def population(distances):
    count = len(distances)
    return Population(
        np.arange(count),
        np.ones(count, np.int64),
        np.ones(count, np.int64),
        np.full(count, 23.0),
        np.asarray(distances, np.float64),
    )


@pytest.mark.parametrize("messages", [((0,), (1,)), ((0, 1),), ((0,),)])
def test_bits_over_the_rate_of_the_own_gain(messages):
    section = RadioSection()
    channel, devices = adaptive_channel(section), population([50.0, 100.0, 400.0])
    sent = signal(section, messages, 2, BITS)
    links, _ = channel.links({}, 3, devices, seed=5)
    got = channel.receive(links, [sent] * 3, None)
    for k, distance in enumerate((50.0, 100.0, 400.0)):
        power = 10 ** ((23.0 - 30) / 10)
        noise = 10 ** ((section.noise - 30) / 10) * distance**section.path_loss_exponent
        gain, longest = float(links.gains[k]), 0.0
        for i, message in enumerate(messages):
            below = sum(sent.coding.split[i + 1 :]) * power * gain
            sinr = gain * power * sent.coding.split[i] / (below + noise)
            bits = sum(BITS[s] for s in message)
            longest = max(longest, bits / (section.bandwidth_hz * math.log2(1 + sinr)))
        assert got.airtime_s[k] == pytest.approx(longest, rel=1e-9)
        assert got.energy_j[k] == pytest.approx(longest * power, rel=1e-9)
    assert got.decoded.tolist() == [len(messages)] * 3


def test_the_same_gains_as_the_paper_s_channel():
    section, devices = RadioSection(), population([100.0] * 4)
    ours, _ = adaptive_channel(section).links({}, 7, devices, seed=1)
    papers, _ = outage_channel(section).links({}, 7, devices, seed=1)
    assert ours.gains.tolist() == papers.gains.tolist()


def test_exactly_at_the_threshold_it_takes_the_fixed_time():
    """With the gain that the paper's rate needs, the adaptive rate is the paper's."""
    section, devices = RadioSection(), population([100.0])
    sent = signal(section, ((0, 1),), 2, BITS)
    channel = adaptive_channel(section)
    links, _ = channel.links({}, 1, devices, seed=0)
    from dataclasses import replace

    threshold = sent.coding.thresholds(links.noise_to_power)[:, 0]
    got = channel.receive(replace(links, gains=threshold), [sent], None)
    assert got.airtime_s[0] == pytest.approx(sent.airtime_s(section.bandwidth_hz), rel=1e-9)
