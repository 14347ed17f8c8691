"""A rate that follows the gain: airtime against the Shannon formula, device by device."""

import math
from dataclasses import replace

import numpy as np
import pytest

from slimfl.devices import Population
from slimfl.experiment import RadioSection
from slimfl.radio import build_channel, outage_channel, signal
from slimfl.radio.adaptive import AdaptiveChannel
from slimfl.radio.outage import parts

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
    channel, devices = AdaptiveChannel(**parts(section)), population([50.0, 100.0, 400.0])
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
    ours, _ = AdaptiveChannel(**parts(section)).links({}, 7, devices, seed=1)
    papers, _ = outage_channel(section).links({}, 7, devices, seed=1)
    assert ours.gains.tolist() == papers.gains.tolist()


def test_exactly_at_the_threshold_it_takes_the_fixed_time():
    """With the gain that the paper's rate needs, the adaptive rate is the paper's."""
    section, devices = RadioSection(), population([100.0])
    sent = signal(section, ((0, 1),), 2, BITS)
    channel = AdaptiveChannel(**parts(section))
    links, _ = channel.links({}, 1, devices, seed=0)
    threshold = sent.coding.thresholds(links.noise_to_power)[:, 0]
    got = channel.receive(replace(links, gains=threshold), [sent], None)
    assert got.airtime_s[0] == pytest.approx(sent.airtime_s(section.bandwidth_hz), rel=1e-9)


def test_what_is_left_of_a_cancelled_message_slows_the_later_ones():
    section = RadioSection(split=(0.8, 0.2), residual_interference=0.03)
    sent, devices = signal(section, ((0,), (1,)), 2, (1.0, 1e6)), population([80.0, 200.0])
    channel = build_channel(rate_adaptive(section))
    links, _ = channel.links({}, 1, devices, seed=2)
    got = channel.receive(links, [sent] * 2, None)
    for k, distance in enumerate((80.0, 200.0)):
        received = float(links.gains[k]) * 10 ** (23.0 / 10)
        noise = 10 ** (section.noise / 10) * distance**2.5
        # segment 1 is a single bit, so that segment 2 decides how long the signal lasts
        second = math.log2(1 + received * 0.2 / (received * 0.03 * 0.8 + noise))
        assert got.airtime_s[k] == pytest.approx(1e6 / (75e6 * second), rel=1e-9)


def test_devices_that_walk_send_at_the_rate_of_where_they_are():
    section = rate_adaptive(RadioSection(speed_m_s=20.0))
    channel, devices = build_channel(section), population([100.0, 300.0])
    sent, state = signal(section, ((0, 1),), 2, BITS), channel.start(devices, 4)
    distances = []
    for number in (1, 2, 3):
        links, state = channel.links(state, number, devices, seed=4)
        got = channel.receive(links, [sent] * 2, None)
        for k, (x, y) in enumerate(state["place_m"].tolist()):
            received = float(links.gains[k]) * 10 ** (23.0 / 10)
            noise = 10 ** (section.noise / 10) * math.hypot(x, y) ** 2.5
            rate = 75e6 * math.log2(1 + received / noise)
            assert got.airtime_s[k] == pytest.approx(sum(BITS) / rate, rel=1e-9)
            distances.append(math.hypot(x, y))
    assert distances[:2] == pytest.approx([100.0, 300.0])
    assert abs(distances[4] - distances[0]) > 1


def rate_adaptive(section):
    return section.model_copy(update={"model": "rate-adaptive"})
