"""The channel with every part replaced: memory, attempts, energy, and what stays the same."""

import numpy as np
import pytest

from slimfl.devices import Population
from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.radio import OutageLink, Rayleigh, outage_channel, signal

BITS = (1500.0, 3000.0)
SIZES = (48_960.0, 97_792.0)


def alike(count):
    return Population.alike(np.full(count, 100), max_width=1, power_dbm=23.0, distance_m=100.0)


def send(section, bits=BITS):
    return signal(section, ((0,), (1,)), 2, bits)


def test_the_default_is_the_papers_to_the_last_bit():
    """Inverse-transform draws of one uniform number per device, and scalar arithmetic."""
    channel = outage_channel(RadioSection())
    links, state = channel.links(channel.start(alike(100), 7), 3, alike(100), 7)
    assert state == {}
    assert links.gains.tolist() == Rayleigh().gains(7, 3, 100).tolist()
    assert set(links.noise_to_power.tolist()) == {10 ** ((-40.0 - 23.0) / 10) * 100.0**2.5}
    assert links.later_gains is None
    assert links.decoding_draws is None


def spread_out(count, seed=0):
    random = np.random.default_rng(seed)
    return Population(
        ids=np.arange(count),
        samples=np.full(count, 100),
        max_width=np.ones(count, np.int64),
        power_dbm=random.uniform(10, 30, count).round(1),
        distance_m=random.uniform(30, 300, count),
    )


def test_every_device_is_decoded_by_its_own_distance_and_power():
    section = RadioSection(noise_dbm=-42.0, rates="equal")
    channel, devices = outage_channel(section), spread_out(200)
    kinds = [signal(section, messages, 2, SIZES) for messages in (((0,), (1,)), ((0, 1),), ((0,),))]
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
            sum(SIZES[s] for s in message) / (1.5 * len(message) * 75e6)
            for message in sent[row].messages
        )
        assert received.airtime_s[row] == pytest.approx(longest)
        assert received.energy_j[row] == pytest.approx(longest * power_w)
    assert received.attempts.tolist() == [1] * 200


CORRELATED = {
    "ar1": {"fading_process": "ar1", "fading_correlation": 0.9},
    "ar1 by doppler": {"fading_process": "ar1", "doppler_hz": 0.05},
    "jakes": {"fading_process": "jakes", "doppler_hz": 0.05},
    "shadow": {"fading": "none", "shadowing_db": 8.0, "shadowing_correlation": 0.9},
    "all": {
        "fading": "rician",
        "fading_process": "ar1",
        "fading_correlation": 0.9,
        "shadowing_db": 6.0,
        "shadowing_correlation": 0.8,
        "max_attempts": 2,
    },
}


def rounds(section, devices, count, seed=0, state=None, first=1):
    channel, found = outage_channel(section), []
    state = channel.start(devices, seed) if state is None else state
    for number in range(first, first + count):
        links, state = channel.links(state, number, devices, seed)
        found.append(links.gains)
    return np.stack(found), state


@pytest.mark.parametrize("name", CORRELATED)
def test_gains_remember_and_rounds_go_on_where_they_were_left(name):
    section = RadioSection(**CORRELATED[name])
    devices = alike(20_000)
    gains, _ = rounds(section, devices, 3)
    near = np.corrcoef(np.log(gains[0]), np.log(gains[1]))[0, 1]
    assert near > 0.5
    some = alike(300)
    straight, _ = rounds(section, some, 6)
    first, state = rounds(section, some, 3)
    rest, _ = rounds(section, some, 3, state=state, first=4)
    assert np.concatenate([first, rest]).tolist() == straight.tolist()
    assert straight.tolist() == rounds(section, alike(900), 6)[0][:, :300].tolist()


@pytest.mark.parametrize("keys", [{}, *CORRELATED.values()], ids=["paper", *CORRELATED])
def test_who_takes_part_changes_nobodys_gain(keys):
    channel, everybody = outage_channel(RadioSection(**keys)), alike(50)
    few = everybody.take(np.array([40, 2]))
    state = channel.start(everybody, 1)
    all_links, after_all = channel.links(state, 1, everybody, 1)
    few_links, after_few = channel.links(state, 1, few, 1)
    assert few_links.gains.tolist() == all_links.gains[[40, 2]].tolist()
    for name, value in after_all.items():
        assert value.tolist() == after_few[name].tolist()
    nobody, _ = channel.links(state, 1, everybody.take(np.array([], np.int64)), 1)
    assert len(nobody) == 0


@pytest.mark.parametrize("name", CORRELATED)
def test_a_round_that_is_planned_twice_is_the_same_round(name):
    channel, devices = outage_channel(RadioSection(**CORRELATED[name])), alike(20)
    state = channel.start(devices, 0)
    kept = {key: value.copy() for key, value in state.items()}
    once, _ = channel.links(state, 1, devices, 0)
    again, _ = channel.links(state, 1, devices, 0)
    assert once.gains.tolist() == again.gains.tolist()
    assert all((state[key] == kept[key]).all() for key in kept)


def test_a_shadow_that_stays_is_the_same_in_all_rounds():
    gains, _ = rounds(
        RadioSection(fading="none", shadowing_db=8.0, shadowing_correlation=1.0), alike(50), 4
    )
    np.testing.assert_allclose(gains, np.broadcast_to(gains[0], gains.shape), rtol=1e-12)
    assert 10 * np.log10(gains[0]).std() == pytest.approx(8, rel=0.4)


def test_memory_does_not_change_how_often_devices_arrive():
    section = RadioSection(**CORRELATED["all"])
    channel, devices = outage_channel(section), alike(8000)
    sent, state, counts = send(section), channel.start(devices, 0), np.zeros(2)
    for number in (1, 40, 80):  # far enough apart to be nearly independent
        links, _ = channel.links(channel.start(devices, number), 1, devices, number)
        decoded = channel.receive(links, [sent] * 8000, None).decoded
        counts += (decoded[:, None] > np.arange(2)).sum(axis=0)
    expected = channel.probabilities(devices, sent)[0]
    error = np.sqrt(expected * (1 - expected) / 24_000)
    assert (np.abs(counts / 24_000 - expected) <= 4.5 * error).all()
    assert state.keys() == {"scattering", "shadow"}


@pytest.mark.parametrize("gain", ["independent", "same"])
def test_attempts_go_on_until_all_is_decoded_and_each_is_paid_for(gain):
    section = RadioSection(noise_dbm=-38, max_attempts=4, retransmission_gain=gain, rates="equal")
    channel, devices = outage_channel(section), alike(3000)
    sent = send(section)
    links, _ = channel.links({}, 1, devices, 5)
    received = channel.receive(links, [sent] * 3000, None)
    thresholds = sent.coding.thresholds(links.noise_to_power[0])
    once = max(BITS) / (1.5 * 75e6)
    for row in range(3000):
        total, used = 0.0, 0
        for gained in (links.gains[row], *links.later_gains[row]):
            total += gained
            used += 1
            if total >= thresholds[-1]:
                break
        assert received.attempts[row] == used
        assert received.decoded[row] == (total >= thresholds).sum()
        assert received.airtime_s[row] == pytest.approx(used * once)
        assert received.energy_j[row] == pytest.approx(used * once * 10 ** (-0.7))
    assert set(received.attempts.tolist()) == {1, 2, 3, 4}
    expected = channel.probabilities(devices, sent)[0]
    found = (received.decoded[:, None] > np.arange(2)).mean(axis=0)
    assert (np.abs(found - expected) <= 4.5 * np.sqrt(expected * (1 - expected) / 3000)).all()


def test_the_first_attempt_is_the_one_of_a_channel_without_others():
    alone, _ = outage_channel(RadioSection()).links({}, 2, alike(30), 0)
    several, _ = outage_channel(RadioSection(max_attempts=3)).links({}, 2, alike(30), 0)
    assert several.gains.tolist() == alone.gains.tolist()
    assert several.later_gains.shape == (30, 2)
    # device k's later gains do not depend on who else is there
    few, _ = outage_channel(RadioSection(max_attempts=3)).links({}, 2, alike(9), 0)
    assert few.later_gains.tolist() == several.later_gains[:9].tolist()


@pytest.mark.parametrize("multiplexing", ["orthogonal-energy", "orthogonal-airtime"])
def test_segments_in_turn_cost_what_their_coding_says(multiplexing):
    section = RadioSection(multiplexing=multiplexing, split=(0.6, 0.4))
    channel = outage_channel(section)
    links, _ = channel.links({}, 1, alike(5), 0)
    sent = send(section)
    received = channel.receive(links, [sent] * 5, None)
    airtime, full_power = sent.coding.durations_s(BITS, 75e6)
    assert received.airtime_s == pytest.approx([airtime] * 5)
    assert received.energy_j == pytest.approx([full_power * 10**-0.7] * 5)


def test_different_signals_in_one_call_are_each_decoded_as_alone():
    section = RadioSection()
    channel, devices = outage_channel(section), alike(90)
    kinds = [signal(section, messages, 2, BITS) for messages in (((0,), (1,)), ((0, 1),), ((0,),))]
    sent = [kinds[row % 3] for row in range(90)]
    links, _ = channel.links({}, 1, devices, 0)
    received = channel.receive(links, sent, None)
    for row in range(90):
        alone = channel.receive(links.take([row]), [sent[row]], None)
        assert alone.decoded[0] == received.decoded[row]
        assert alone.airtime_s[0] == received.airtime_s[row]
    assert len(channel.receive(links.take([]), [], None).decoded) == 0


class Halved:
    """Somebody's own fading, with no more than the protocol asks for."""

    def gains(self, seed, round, devices):
        return 0.5 * Rayleigh().gains(seed, round, devices)

    def survival(self, threshold):
        return np.exp(-2 * threshold)


def test_a_fading_of_ones_own_is_told_what_it_lacks():
    from dataclasses import replace

    plain = replace(outage_channel(RadioSection()), fading=Halved())
    links, _ = plain.links({}, 1, alike(3), 0)
    assert plain.probabilities(alike(3), send(RadioSection())).shape == (3, 2)
    shadowed = replace(plain, shadowing_db=3.0)
    with pytest.raises(RequestError, match="from_scattering"):
        shadowed.probabilities(alike(3), send(RadioSection()))
    again = replace(plain, attempts=outage_channel(RadioSection(max_attempts=2)).attempts)
    links, _ = again.links({}, 1, alike(3), 0)
    assert links.later_gains.shape == (3, 1)
    with pytest.raises(RequestError, match="sum_survival"):
        again.probabilities(alike(3), send(RadioSection()))
