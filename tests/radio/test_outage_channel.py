"""The channel of a federation against one link at a time."""

import numpy as np
import pytest

from slimfl.devices import Population
from slimfl.experiment import RadioSection
from slimfl.radio import OutageLink, Rayleigh, outage_channel, outage_link, signal

BITS = (48_960.0, 97_792.0)


def spread_out(count, seed=0):
    random = np.random.default_rng(seed)
    return Population(
        ids=np.arange(count),
        samples=np.full(count, 100),
        max_width=np.ones(count, np.int64),
        power_dbm=random.uniform(10, 30, count).round(1),
        distance_m=random.uniform(30, 300, count),
    )


def alike(count):
    return Population.alike(np.full(count, 100), max_width=1, power_dbm=23.0, distance_m=100.0)


def test_equal_devices_have_the_link_of_the_section_to_the_last_bit():
    section = RadioSection(implementation_loss_db=1.6)
    link, channel = outage_link(section), outage_channel(section)
    links, _ = channel.links({}, 3, alike(10), seed=7)
    assert set(links.noise_to_power.tolist()) == {link.noise_to_power}
    assert links.gains.tolist() == link.gains(7, 3, 10).tolist()
    sent = signal(section, ((0,), (1,)), 2, BITS)
    received = channel.receive(links, [sent] * 10, None)
    assert received.decoded.tolist() == link.decoded(sent.coding, links.gains).tolist()


def test_every_device_is_decoded_by_its_own_distance_and_power():
    section = RadioSection(noise_dbm=-42.0, rates="equal")
    channel, devices = outage_channel(section), spread_out(200)
    kinds = [signal(section, messages, 2, BITS) for messages in (((0,), (1,)), ((0, 1),), ((0,),))]
    sent = [kinds[row % 3] for row in range(200)]
    links, _ = channel.links({}, 1, devices, seed=0)
    received = channel.receive(links, sent, None)
    for row, device in enumerate(devices):
        noise_w = 10 ** ((-42.0 - 30) / 10)
        power_w = 10 ** ((device.power_dbm - 30) / 10)
        ratio = noise_w * device.distance_m**2.5 / power_w
        assert links.noise_to_power[row] == pytest.approx(ratio, rel=1e-12)
        alone = OutageLink.at(links.noise_to_power[row], Rayleigh())
        [decoded] = alone.decoded(sent[row].coding, links.gains[[row]])
        assert received.decoded[row] == decoded
        np.testing.assert_allclose(
            channel.probabilities(devices.take([row]), sent[row])[0],
            alone.decoding_probabilities(sent[row].coding),
        )
        longest = max(
            sum(BITS[s] for s in message) / (1.5 * len(message) * 75e6)
            for message in sent[row].messages
        )
        assert received.airtime_s[row] == pytest.approx(longest)
        assert received.energy_j[row] == pytest.approx(longest * power_w)
    assert received.attempts.tolist() == [1] * 200


def test_a_device_meets_the_same_gain_whoever_else_takes_part():
    channel = outage_channel(RadioSection())
    everybody, _ = channel.links({}, 5, alike(50), seed=1)
    few, _ = channel.links({}, 5, alike(50).take(np.array([40, 2])), seed=1)
    assert few.gains.tolist() == everybody.gains[[40, 2]].tolist()
    nobody, _ = channel.links({}, 5, alike(50).take(np.array([], np.int64)), seed=1)
    assert len(nobody) == 0
