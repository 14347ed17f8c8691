"""Two devices at once: a literal receiver, an integral, and the paired channel."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate

from slimfl.devices import Population
from slimfl.experiment import RadioSection
from slimfl.radio import (
    SignalMaker,
    Superposition,
    build_channel,
    outage_channel,
    radio_cost,
    signal,
)
from slimfl.radio.pairs import decode_pairs, partners


def literal(codings, snr):
    """Decode whatever can be decoded next, until nothing can: layer by layer in plain loops."""
    done = [0, 0]
    while True:
        tried = sorted(
            (k for k in (0, 1) if done[k] < len(codings[k].split)),
            key=lambda k: -snr[k] * codings[k].split[done[k]],
        )
        for k in tried:
            own = snr[k] * codings[k].split[done[k]]
            heard = sum(snr[j] * sum(codings[j].split[done[j] :]) for j in (0, 1)) - own
            heard += sum(
                snr[j] * codings[j].residual * sum(codings[j].split[: done[j]]) for j in (0, 1)
            )
            if math.log2(1 + own / (1 + heard)) >= codings[k].spectral_efficiencies[done[k]]:
                done[k] += 1
                break
        else:
            return tuple(done)


@pytest.mark.parametrize(
    "codings",
    [
        (Superposition((0.8,), (1.0,)), Superposition((0.8,), (1.0,))),
        (Superposition((1.5, 1.5), (0.8, 0.2)), Superposition((1.5, 1.5), (0.8, 0.2))),
        (Superposition((0.4, 0.7, 0.5), (0.6, 0.3, 0.1)), Superposition((0.5,), (1.0,))),
        (
            Superposition((0.5, 0.5), (0.7, 0.3), 0.03),
            Superposition((0.5, 0.5), (0.7, 0.3), 0.03),
        ),
    ],
    ids=str,
)
def test_pairs_are_decoded_as_by_a_receiver_in_plain_loops(codings):
    random = np.random.default_rng(0)
    snr = 10 ** random.uniform(-1, 4, (2, 3000))
    found = decode_pairs(*codings, *snr)
    expected = np.array([literal(codings, pair) for pair in snr.T])
    assert (np.stack(found, axis=1) == expected).all()
    assert len(np.unique(expected, axis=0)) > 3


def test_without_a_partner_a_device_is_decoded_as_alone():
    coding, snr = Superposition((1.5, 1.5), (0.8, 0.2)), np.geomspace(0.5, 100, 200)
    found, other = decode_pairs(coding, coding, snr, np.zeros(200))
    assert found.tolist() == (snr[:, None] >= coding.thresholds(1.0)).sum(axis=1).tolist()
    assert not other.any()


@pytest.mark.parametrize("rates", [(0.5, 0.5), (1.5, 1.5), (0.3, 1.2), (1.0, 1.0)])
@pytest.mark.parametrize("ratios", [(0.05, 0.05), (0.01, 0.3), (0.4, 0.02)])
def test_pairs_are_decoded_as_often_as_an_integral_says(rates, ratios):
    u, v = (2**rate - 1 for rate in rates)
    a, b = (1 / ratio for ratio in ratios)

    def inner(y):
        """Pr(device 1 decoded given y): its x lies above one threshold, or in a band."""
        alone = math.exp(-u * (1 + y) / a)
        low, high = u, min(y / v - 1, u * (1 + y))
        band = math.exp(-low / a) - math.exp(-high / a) if high > low else 0.0
        return (alone + band) * math.exp(-y / b) / b

    edges = sorted({0.0, v * (1 + u), *np.geomspace(1e-3 * b, 60 * b, 60)})
    if u * v < 1:
        edges = sorted({*edges, v * (1 + u) / (1 - u * v)})
    expected = sum(integrate.quad(inner, low, high)[0] for low, high in itertools.pairwise(edges))
    draws = 60_000
    random = np.random.default_rng(1)
    x, y = a * random.exponential(size=draws), b * random.exponential(size=draws)
    first, _ = decode_pairs(*(Superposition((rate,), (1.0,)) for rate in rates), x, y)
    error = math.sqrt(expected * (1 - expected) / draws)
    assert abs(first.mean() - expected) <= 4.5 * error + 1e-9


# in a federation


def test_everybody_has_one_partner_and_is_its_partners_partner():
    for count in (0, 1, 2, 7, 50):
        found = partners(count, seed=3, round=4)
        assert (found == -1).sum() == count % 2
        for row, other in enumerate(found):
            assert other == -1 or (other != row and found[other] == row)
    assert partners(50, 3, 4).tolist() != partners(50, 3, 5).tolist()


def alike(count):
    return Population.alike(np.full(count, 100), max_width=1, power_dbm=23.0, distance_m=100.0)


@pytest.mark.parametrize("messages", [((0,), (1,)), ((0,),)])
@pytest.mark.parametrize("fading", ["rayleigh", "rician"])
def test_the_paired_channel_decodes_as_often_as_it_says(messages, fading):
    section = RadioSection(
        users_per_slot=2, fading=fading, spectral_efficiency=0.5, shadowing_db=6.0, split=(0.7, 0.3)
    )
    channel, devices = build_channel(section), alike(20_000)
    sent = signal(section, messages, 2, (1e5, 1e5))
    links, _ = channel.links({}, 1, devices, 0)
    received = channel.receive(links, [sent] * 20_000, None)
    expected = channel.probabilities(devices, sent)[0]
    found = (received.decoded[:, None] > np.arange(len(messages))).mean(axis=0)
    # partners are decoded together, so two rows count for one
    error = np.sqrt(expected * (1 - expected) * (1 / 10_000 + 1 / 200_000))
    assert (np.abs(found - expected) <= 4.5 * error).all()
    one = channel.receive(links.take([5]), [sent], None)
    assert one.decoded[0] == received.decoded[5]


UMI_LOS = {"path_loss": "umi", "line_of_sight": "always", "noise_dbm": -95.0}


@pytest.mark.parametrize(
    "keys",
    [UMI_LOS, {**UMI_LOS, "shadowing_db": 0.0}, {"residual_interference": 0.2}],
    ids=["3gpp's own shadow", "3gpp without a shadow", "imperfect cancellation"],
)
def test_one_message_each_against_monte_carlo(keys):
    """With a shadow, without one, and with what is left of a cancelled message."""
    section = RadioSection(users_per_slot=2, **keys)
    sent = signal(section, ((0, 1),), 2, (1e5, 1e5))
    found = build_channel(section).probabilities(alike(2), sent)[0, 0]
    draws, random = 200_000, np.random.default_rng(11)
    mean = 10 ** ((23 + 40) / 10) / 100**2.5
    shadow_db, residual = 0.0, keys.get("residual_interference", 0.0)
    if "path_loss" in keys:  # TR 38.901, table 7.4.1-1: UMi LOS below the breakpoint of 354 m
        loss_db = 32.4 + 21 * math.log10(math.hypot(100, 10 - 1.5)) + 20 * math.log10(5.9)
        mean = 10 ** ((23 + 95 - loss_db) / 10)
        shadow_db = keys.get("shadowing_db", 4.0)
    shape = (2, draws)
    x, y = (
        mean * random.exponential(size=shape) * 10 ** (shadow_db * random.normal(size=shape) / 10)
    )
    # both segments in one message: 3 bit/s/Hz, which needs a ratio of 7
    decoded = (x >= 7 * (1 + y)) | ((y >= 7 * (1 + x)) & (x >= 7 * (1 + residual * y)))
    expected = decoded.mean()
    error = math.sqrt(expected * (1 - expected) * 2 / draws)  # of both simulations
    assert abs(found - expected) <= 4.5 * error


def test_a_pair_shares_its_airtime_and_each_spends_its_energy():
    section = RadioSection(users_per_slot=2)
    channel, single = build_channel(section), outage_channel(RadioSection())
    sent = signal(section, ((0,), (1,)), 2, (1e5, 1e5))
    links, _ = channel.links({}, 1, alike(5), 0)
    received, alone = (
        channel.receive(links, [sent] * 5, None),
        single.receive(links, [sent] * 5, None),
    )
    assert received.energy_j.tolist() == alone.energy_j.tolist()
    assert received.airtime_s.tolist() == alone.airtime_s.tolist()
    cost = radio_cost(links, [sent] * 5, received, 2)
    assert cost.airtime_s == pytest.approx(3 * alone.airtime_s[0])
    assert cost.energy_j == pytest.approx(alone.energy_j.sum())
    assert (received.decoded <= alone.decoded).all()
    assert channel.probabilities(alike(5), sent) is None


def test_partners_with_splits_of_their_own_are_decoded_as_in_plain_loops():
    """Devices at different places, each with the split for its own mean gain, some with one
    message."""
    section = RadioSection(users_per_slot=2, split="per-device", spectral_efficiency=0.5)
    count = 400
    devices = replace(alike(count), distance_m=np.random.default_rng(3).uniform(30, 250, count))
    channel, maker = build_channel(section), SignalMaker(section, 2, (1e5, 1e5))
    links, _ = channel.links({}, 1, devices, 0)
    maker.look_at(devices, links.noise_to_power, (1, 1))
    wanted = [((0,), (1,)) if k % 3 else ((0, 1),) for k in range(count)]
    signals = maker.signals(wanted, links.noise_to_power)
    known = links.sent(signals)
    found = channel.receive(known, signals, None).decoded
    snr, partner = links.gains / links.noise_to_power, partners(count, 0, 1)
    expected = [
        literal((signals[k].coding, signals[partner[k]].coding), (snr[k], snr[partner[k]]))[0]
        for k in range(count)
    ]
    assert found.tolist() == expected
    assert len({id(one) for one in signals}) > 20
    blind = channel.receive(links, signals, None).decoded
    assert (blind != found).any(), "what the partner sends makes a difference"
    part = [5, 77, 300]
    some = channel.receive(known.take(part), [signals[k] for k in part], None)
    assert some.decoded.tolist() == found[part].tolist()
