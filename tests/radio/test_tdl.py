"""Frequency-selective links: the profiles of TR 38.901 and decoding at an effective SINR."""

import cmath
import math

import numpy as np
import pytest
from scipy import stats

from slimfl.devices import Population
from slimfl.errors import RequestError
from slimfl.experiment import RadioSection, build
from slimfl.radio import (
    OutageLink,
    Rayleigh,
    Rician,
    Signal,
    Superposition,
    build_channel,
    decoding_frequencies,
    outage_link,
    probabilities_over_noise,
    signal,
)
from slimfl.radio import build_coding as coding
from slimfl.radio.coding import InTurnAtLowerPower
from slimfl.radio.selective import (
    DRAWS,
    at_effective_sinr,
    build_profile,
    effective_sinr,
    profiles,
)
from slimfl.radio.waveform.code import Modem
from slimfl.radio.waveform.symbols import exchange
from slimfl.radio.waveform.table import BlockCurve
from slimfl.rng import generator
from tests import asking

BOTH = Superposition((1.5, 1.5), (0.8, 0.2))


def profile(name="tdl-c", **values):
    return build_profile(RadioSection(fading=name, **values))


def within_binomial(found, expected, draws):
    error = np.sqrt(expected * (1 - expected) / draws)
    assert np.all(np.abs(np.asarray(found) - expected) <= 4 * error + 1e-12), (found, expected)


# the profiles


@pytest.mark.parametrize("name", profiles())
def test_delays_are_in_units_of_the_delay_spread(name):
    """The root mean square of a normalised profile is 1 (TR 38.901, section 7.7.3)."""
    line = profile(name, delay_spread_s=1e-6)
    delays, powers = np.array(line.delays_s) / 1e-6, np.array(line.powers)
    assert powers.sum() == pytest.approx(1)
    spread = math.sqrt(powers @ delays**2 - (powers @ delays) ** 2)
    assert spread == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(("name", "k_db"), [("tdl-d", 13.3), ("tdl-e", 22.0)])
def test_the_first_tap_in_sight_has_the_published_k_factor(name, k_db):
    powers = profile(name).powers
    assert 10 * math.log10(powers[0] / powers[1]) == pytest.approx(k_db, abs=0.01)


def test_every_subcarrier_is_rayleigh_and_correlated_as_the_delays_say():
    line = profile("tdl-c", subcarriers=16, delay_spread_s=3e-8)
    gains = line.over_band(1, 2, 20_000)
    assert stats.kstest(gains[:, 5], "expon").pvalue > 1e-3
    for apart in (1, 4, 9):
        step = apart * 75e6 / 16
        transform = sum(
            p * cmath.exp(-2j * math.pi * step * tau)
            for p, tau in zip(line.powers, line.delays_s, strict=True)
        )
        measured = np.corrcoef(gains[:, 0], gains[:, apart])[0, 1]
        # for CN numbers the gains' correlation is that of the numbers, squared
        assert measured == pytest.approx(abs(transform) ** 2, abs=0.05)


def test_gains_are_those_of_a_loop_over_taps():
    line = profile("tdl-d", subcarriers=5, delay_spread_s=2e-7)
    drawn = generator(3, "taps", 4).standard_normal((6, len(line.powers), 2))
    gains = line.over_band(3, 4, 6)
    for device in range(6):
        for k in range(5):
            frequency = 75e6 * ((k + 0.5) / 5 - 0.5)
            response = 0j
            for tap, (power, delay) in enumerate(zip(line.powers, line.delays_s, strict=True)):
                height = complex(*drawn[device, tap]) / math.sqrt(2) if tap else 1.0
                turn = cmath.exp(-2j * math.pi * frequency * delay)
                response += math.sqrt(power) * height * turn
            assert gains[device, k] == pytest.approx(abs(response) ** 2)


def test_a_device_has_its_gains_whoever_else_takes_part():
    line = profile()
    # To a few units of the last digit: the order in which a product's sums are added depends on its
    # shape on some processors. Gains are about 1, and the terms of a small one cancel.
    few = 16 * np.finfo(np.float64).eps
    few_devices, many = line.over_band(1, 2, 3), line.over_band(1, 2, 50)[:3]
    np.testing.assert_allclose(few_devices, many, rtol=few, atol=few)
    assert not np.allclose(line.over_band(1, 3, 3), line.over_band(1, 2, 3))


# effective SINR


@pytest.mark.parametrize(
    "coding",
    [BOTH, Superposition((0.5, 0.5), (0.8, 0.2), 0.1), InTurnAtLowerPower((1.0, 1.0), (0.4, 0.6))],
)
def test_a_flat_band_has_the_sinr_of_a_flat_link(coding):
    snr = np.array([0.3, 5.0, 200.0])
    band = np.repeat(snr[:, None], 7, axis=1)
    np.testing.assert_allclose(effective_sinr(coding, band), coding.sinr(snr))

    class Reading:
        """Notes the ratios of flat links that it is asked for."""

        certain, asked = False, []

        def probabilities(self, coding, bits, snr):
            self.asked.append(snr)
            return np.ones((len(snr), 2))

    at_effective_sinr(Reading(), coding, (), effective_sinr(coding, band))
    np.testing.assert_allclose(Reading.asked, [snr, snr], rtol=1e-9)


def test_decoding_is_that_of_a_loop_over_subcarriers():
    """Mean capacity against the rate, message by message, in plain arithmetic."""
    line, noise = profile("tdl-b"), 0.08
    gains = line.over_band(0, 1, 200)
    expected = []
    for row in gains:
        count = 0
        for message, rate in enumerate(BOTH.spectral_efficiencies):
            share, later = BOTH.split[message], sum(BOTH.split[message + 1 :])
            capacity = sum(math.log2(1 + g * share / (g * later + noise)) for g in row) / len(row)
            if capacity < rate:
                break
            count += 1
        expected.append(count)
    assert set(expected) == {0, 1, 2}
    link = outage_link(RadioSection(fading="tdl-b"))
    found = link.channel.decoded(BOTH, (), gains, np.asarray(noise), None)
    assert found.tolist() == expected


@pytest.mark.parametrize(("name", "flat"), [("tdl-a", Rayleigh()), ("tdl-d", None)])
def test_without_delays_a_profile_is_a_flat_link(name, flat):
    section = RadioSection(fading=name, delay_spread_s=0.0)
    link = outage_link(section)
    if flat is None:
        powers = profile(name).powers
        flat = Rician(powers[0] / sum(powers[1:]))
    expected = OutageLink.at(link.noise_to_power, flat).decoding_probabilities(BOTH)
    within_binomial(link.decoding_probabilities(BOTH), expected, DRAWS)
    within_binomial(decoding_frequencies(link, BOTH, 20_000, 5), expected, 20_000)


def test_longer_delays_are_more_diversity():
    outages = [
        1 - outage_link(RadioSection(fading="tdl-c", delay_spread_s=spread))
        .decoding_probabilities(BOTH)
        for spread in (0.0, 1e-8, 1e-7, 1e-6)
    ]  # fmt: skip
    assert (np.diff(outages, axis=0) < 0).all()
    assert outages[-1][0] < outages[0][0] / 5


OVER_NOISE = {
    "superposed": {"fading": "tdl-a"},
    "in a shadow": {"fading": "tdl-d", "shadowing_db": 6.0},
    "badly cancelled": {"fading": "tdl-b", "residual_interference": 0.03},
    "in turn": {"fading": "tdl-c", "multiplexing": "orthogonal-airtime"},
    "with a gap": {"fading": "tdl-a", "decoder": "gap", "sinr_gap_db": 2.0},
    "short codewords": {"fading": "tdl-a", "decoder": "normal", "codeword_symbols": 100},
}


@pytest.mark.parametrize("name", OVER_NOISE)
def test_interpolated_curves_are_those_of_the_same_links_at_each_noise(name):
    section = RadioSection(subcarriers=12, **OVER_NOISE[name])
    split = (0.6, 0.4) if name == "in turn" else (0.8, 0.2)
    shared = coding(section, (1.5, 1.5), split)
    noises = np.array([-300.0, -62.0, -48.0, -43.5, -40.0, -36.2, -31.0, 300.0])
    found = probabilities_over_noise(section, shared, noises)
    shadow_db = section.shadowing_db or 0.0
    shadow = 10 ** (shadow_db / 10 * generator(0, "shadowing", 0).standard_normal(DRAWS))
    gains = build_profile(section).over_band(0, 0, DRAWS) * shadow[:, None]
    decoder = outage_link(section).channel.decoder
    for row, noise in zip(found, noises.tolist(), strict=True):
        sinr = effective_sinr(shared, gains / (10 ** ((noise - 23) / 10) * 100**2.5))
        alone = at_effective_sinr(decoder, shared, (), sinr).mean(axis=0)
        # two links may be as near to a threshold as 1e-6
        np.testing.assert_allclose(row, alone, atol=2 / DRAWS, err_msg=str(noise))
    assert (found[0] > 0.999).all()
    assert (found[-1] < 1e-9).all()
    assert ((found > 0.02) & (found < 0.98)).sum() >= 5


def test_a_curve_over_noise_is_how_often_the_capacity_suffices():
    """Gains of other links than the curve's, and the capacity in plain loops."""
    section, count = RadioSection(fading="tdl-a", subcarriers=16), 3000
    noises = np.array([-45.0, -40.0, -35.0, -30.0])
    found = probabilities_over_noise(section, BOTH, noises)
    gains = build_profile(section).over_band(77, 3, count).tolist()
    for row, noise in zip(found, noises.tolist(), strict=True):
        ratio = 10 ** ((noise - 23) / 10) * 100**2.5
        both = [0, 0]
        for over_band in gains:
            snr = [gain / ratio for gain in over_band]
            first = sum(math.log2(1 + x * 0.8 / (1 + x * 0.2)) for x in snr) / len(snr)
            second = sum(math.log2(1 + x * 0.2) for x in snr) / len(snr)
            both[0] += first >= 1.5
            both[1] += first >= 1.5 and second >= 1.5
        within_binomial(np.array(both) / count, row, 1 / (1 / count + 1 / DRAWS))


# the channel


def test_the_channel_decodes_as_often_as_it_says():
    section = RadioSection(fading="tdl-a", delay_spread_s=5e-8)
    devices = Population.alike(
        np.ones(3000, np.int64), max_width=1, power_dbm=23.0, distance_m=100.0
    )
    channel = build_channel(section)
    sent = signal(section, ((0,), (1,)), 2, (3e5, 6e5))
    links, _ = channel.links({}, 1, devices, 3)
    got = channel.receive(links, [sent] * 3000, None)
    expected = channel.probabilities(devices, sent)[0]
    for message in (0, 1):
        within_binomial((got.decoded > message).mean(), expected[message], 2500)
    np.testing.assert_allclose(links.gains, links.subcarrier_gains.mean(axis=1))
    few, _ = channel.links({}, 1, devices.take([2999, 17]), 3)
    np.testing.assert_array_equal(few.subcarrier_gains, links.subcarrier_gains[[2999, 17]])
    taken = channel.receive(links.take([5, 6]), [sent] * 2, None)
    assert taken.decoded.tolist() == got.decoded[[5, 6]].tolist()


def test_a_run_takes_it_from_its_keys(tmp_path):
    done = asking.run(
        method="slimfl",
        rounds=1,
        out=tmp_path,
        devices=4,
        data__dataset="synthetic",
        data__train_samples=200,
        data__test_samples=50,
        training__steps=1,
        radio__fading="tdl-e",
        radio__delay_spread_s=3e-8,
    )
    line = build_profile(done.experiment.radio)
    expected = line.over_band(done.experiment.seed, 1, 4).mean(axis=1)
    np.testing.assert_allclose(done.lines[0].gains, expected)


def test_real_symbols_meet_the_subcarriers():
    """Decoded where the effective SINR says so, unless it is within 1 dB of the middle."""
    modem, coding = Modem(2, 256), Superposition((1.0,), (1.0,))
    sent, random = Signal(((0,),), coding), np.random.default_rng(0)
    gains = profile("tdl-c", subcarriers=32).over_band(0, 1, 40)
    counted = [0, 0]
    for row in gains:
        snr = row * 2.0
        effective_db = 10 * np.log10(effective_sinr(coding, snr)[0])
        if abs(effective_db - 1.6) < 1:
            continue
        payload = [random.integers(256, size=29, dtype=np.uint8)]
        arrived, _ = exchange(modem, sent, payload, [snr], random)
        assert len(arrived) == int(effective_db > 1.6)
        counted[len(arrived)] += 1
        assert all(got.tobytes() == payload[0].tobytes() for got in arrived)
    assert min(counted) >= 3


def test_a_table_is_asked_at_the_effective_ratio():
    class Steep:
        certain = False

        def probabilities(self, coding, bits, snr):
            success = BlockCurve(2.0, 0.5).success(coding.sinr(snr))
            return np.cumprod(success, axis=-1)

    gains = profile().over_band(0, 1, 50) / 0.05
    found = at_effective_sinr(Steep(), BOTH, (), effective_sinr(BOTH, gains))
    capacity = np.log2(1 + gains * 0.8 / (1 + gains * 0.2)).mean(axis=1)
    expected = BlockCurve(2.0, 0.5).success(2**capacity - 1)
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-9)
    assert (found[:, 1] <= found[:, 0]).all()


@pytest.mark.parametrize(
    "keys",
    [
        {"fading_process": "ar1", "fading_correlation": 0.5},
        {"max_attempts": 2},
        {"users_per_slot": 2},
        {"downlink": "lossy"},
        {"model": "rate-adaptive"},
        {"subcarriers": 0},
        {"delay_spread_s": -1e-9},
        {"delay_spread_s": float("nan")},
    ],
)
def test_what_does_not_go_together_is_refused(keys):
    with pytest.raises(RequestError) as caught:
        build({"radio": {"fading": "tdl-a", **keys}})
    assert "\n" not in str(caught.value)
