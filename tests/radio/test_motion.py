"""Devices that walk: step by step in plain loops, and as a function of their key."""

import math

import numpy as np
import pytest

from slimfl.devices import Population
from slimfl.experiment import RadioSection
from slimfl.radio import build_channel, heard, outage_channel, signal
from slimfl.radio.moving import MovingChannel


def at(distances):
    count = len(distances)
    ones = np.ones(count, np.int64)
    power_dbm = np.full(count, 23.0)
    return Population(np.arange(count), ones, ones, power_dbm, np.array(distances, float))


def walk(channel, devices, rounds, seed=0):
    state, places, links = channel.start(devices, seed), [], []
    for number in range(1, rounds + 1):
        link, state = channel.links(state, number, devices, seed)
        places.append(state["place_m"].copy())
        links.append(link)
    return np.stack(places), links


def test_a_device_begins_where_its_population_has_it():
    channel = build_channel(RadioSection(speed_m_s=3.0))
    places, links = walk(channel, at([20.0, 150.0]), 1)
    assert np.hypot(*places[0].T) == pytest.approx([20.0, 150.0])
    still, _ = outage_channel(RadioSection()).links({}, 1, at([20.0, 150.0]), 0)
    assert links[0].noise_to_power == pytest.approx(still.noise_to_power)
    assert links[0].gains.tolist() == still.gains.tolist()


def test_it_walks_no_faster_than_it_can_and_in_straight_lines():
    channel = build_channel(RadioSection(speed_m_s=3.0, round_s=2.0))
    places, links = walk(channel, at([50.0, 100.0, 150.0]), 60)
    steps = np.hypot(*np.moveaxis(np.diff(places, axis=0), -1, 0))
    assert steps.max() <= 6.0 + 1e-9
    assert np.median(steps) == pytest.approx(6.0)
    assert np.hypot(*places.reshape(-1, 2).T).max() <= 150.0 + 1e-9
    for place, link in zip(places, links, strict=True):
        loss = [max(math.hypot(*one), 1.0) ** 2.5 for one in place]
        expected = [10 ** ((-40 - 23) / 10) * one for one in loss]
        assert link.noise_to_power == pytest.approx(expected)


def test_after_a_long_walk_devices_are_all_over_the_disc():
    channel = MovingChannel(outage_channel(RadioSection()), 40.0, radius_m=100.0)
    places, _ = walk(channel, at([100.0] * 2000), 40)
    distance = np.hypot(*places[-1].T)
    assert distance.max() <= 100.0 + 1e-9
    assert 0.3 < (distance < 50).mean() < 0.6  # nearer to the middle than a uniform 1/4
    assert np.abs(places[-1].mean(axis=0)).max() < 6


def test_places_are_a_function_of_seed_round_and_device():
    channel = MovingChannel(outage_channel(RadioSection()), 10.0, radius_m=100.0)
    few, _ = walk(channel, at([60.0] * 5), 10)
    many, _ = walk(channel, at([60.0] * 9), 10)
    assert few.tolist() == many[:, :5].tolist()


def test_nothing_is_expected_of_devices_that_move():
    section = RadioSection(speed_m_s=1.0)
    sent = signal(section, ((0,), (1,)), 2)
    assert build_channel(section).probabilities(at([50.0]), sent) is None


def test_the_global_model_is_heard_where_the_update_is_sent_from():
    """Without fading, exactly the devices within a radius hear it, in the first round too."""
    section = RadioSection(
        fading="none", speed_m_s=10.0, area_radius_m=300.0, downlink="lossy",
        downlink_power_dbm=20.0, downlink_spectral_efficiency=1.0,
    )  # fmt: skip
    # at 1 bit/s/Hz the ratio of signal to noise must be 1: 20 dBm - 25 log10(d) = -40 dBm
    reach_m = 10 ** ((20 + 40) / 25)
    channel, devices = build_channel(section), at(reach_m + np.linspace(-15, 15, 40))
    state = channel.start(devices, 7)
    for number in (1, 2, 3):
        found = heard(section, channel, state, number, devices, 7)
        _, state = channel.links(state, number, devices, 7)
        expected = [math.hypot(*place) <= reach_m for place in state["place_m"]]
        assert found.tolist() == expected, f"round {number}"
        assert 0 < sum(expected) < len(expected)
