"""Every fading model against its distribution and a published value."""

import math

import numpy as np
import pytest
from scipy import special, stats

from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.radio import Nakagami, Rayleigh, Rician
from slimfl.radio.fading import (
    Autoregressive,
    Jakes,
    NoFading,
    Shadowed,
    build_fading,
    doppler_correlation,
)


def rice_gain(k):
    """|h|^2 of scipy's Rice distribution, scaled to mean power 1."""
    envelope = stats.rice(math.sqrt(2 * k), scale=math.sqrt(1 / (2 * (k + 1))))
    return lambda gain: envelope.cdf(np.sqrt(gain))


def nakagami_gain(m):
    return lambda gain: stats.nakagami(m).cdf(np.sqrt(gain))


def shadowed_rayleigh(sigma_db):
    """Suzuki's distribution by Gauss-Hermite quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    factors = 10 ** (sigma_db * nodes / 10)
    weights = weights / weights.sum()
    return lambda gain: ((1 - np.exp(-np.divide.outer(gain, factors))) * weights).sum(axis=-1)


MODELS = {
    "rayleigh": (Rayleigh(), stats.expon.cdf),
    "rician, weak": (Rician(0.3), rice_gain(0.3)),
    "rician, strong": (Rician(12.0), rice_gain(12.0)),
    "nakagami, worse than rayleigh": (Nakagami(0.5), nakagami_gain(0.5)),
    "nakagami, better": (Nakagami(3.7), nakagami_gain(3.7)),
    "shadowed rayleigh": (Shadowed(Rayleigh(), 6.0), shadowed_rayleigh(6.0)),
    "shadow alone": (
        Shadowed(NoFading(), 8.0),
        stats.lognorm(8 * math.log(10) / 10).cdf,
    ),
}
fading_models = pytest.mark.parametrize(("fading", "cdf"), MODELS.values(), ids=MODELS)


@fading_models
def test_gains_have_the_distribution_across_devices(fading, cdf):
    assert stats.kstest(fading.gains(0, 1, 20_000), cdf).pvalue > 1e-3


@fading_models
def test_gains_have_the_distribution_across_rounds_and_no_memory(fading, cdf):
    gains = np.array([fading.gains(3, number, 2)[1] for number in range(1, 3001)])
    assert stats.kstest(gains, cdf).pvalue > 1e-3
    ranks = stats.rankdata(gains)
    assert abs(np.corrcoef(ranks[:-1], ranks[1:])[0, 1]) < 4 / math.sqrt(3000)


@fading_models
def test_survival_is_the_rest_of_the_distribution(fading, cdf):
    thresholds = np.geomspace(1e-3, 20, 41)
    np.testing.assert_allclose(fading.survival(thresholds), 1 - cdf(thresholds), atol=2e-6)
    assert fading.survival(np.array([0.0]))[0] == 1
    assert fading.survival(np.array([np.inf]))[0] == 0


@fading_models
def test_a_devices_gain_does_not_depend_on_the_number_of_devices(fading, cdf):
    many = fading.gains(5, 9, 700)
    for few in (1, 7, 350):
        assert fading.gains(5, 9, few).tolist() == many[:few].tolist()


def test_two_methods_under_one_seed_meet_the_same_channel():
    one, other = Rayleigh(), build_fading(RadioSection())
    one.gains(9, 1, 100)  # another order of rounds
    for number in (1, 2, 3):
        assert np.array_equal(one.gains(0, number, 10), other.gains(0, number, 10))


def test_rounds_seeds_and_devices_have_gains_of_their_own():
    fading = Rayleigh()
    gains = np.stack([fading.gains(seed, n, 20) for seed in (0, 1) for n in (1, 2, 3)])
    assert len(np.unique(gains)) == gains.size


def test_without_fading_the_gain_is_one():
    fading = NoFading()
    assert fading.gains(0, 1, 3).tolist() == [1, 1, 1]
    assert fading.survival(np.array([0.5, 1.0, 1.0001])).tolist() == [1, 1, 0]


# published values


def test_marcums_q_of_equal_arguments():
    """Q_1(a, a) = (1 + exp(-a^2) I_0(a^2)) / 2; Q_1(1, 1) = 0.73288 in tables."""
    assert Rician(0.5).survival(np.array([1 / 3]))[0] == pytest.approx(0.73288, abs=5e-6)
    for a in (0.4, 1.7, 3.0):
        k = a**2 / 2
        expected = (1 + math.exp(-(a**2)) * special.i0(a**2)) / 2
        found = Rician(k).survival(np.array([a**2 / (2 * (k + 1))]))[0]
        assert found == pytest.approx(expected, rel=1e-10)


def test_nakagami_2_by_hand():
    """Q(2, 2 t) = (1 + 2 t) exp(-2 t)."""
    found = Nakagami(2.0).survival(np.array([1.0]))[0]
    assert found == pytest.approx(3 * math.exp(-2), rel=1e-12)


def test_the_mean_of_a_log_normal_shadow():
    """Its mean lies sigma^2 ln(10) / 20 dB above its median: 7.37 dB at 8 dB."""
    gains = Shadowed(NoFading(), 8.0).gains(0, 1, 1_000_000)
    assert 10 * math.log10(np.median(gains)) == pytest.approx(0, abs=0.05)
    assert 10 * math.log10(gains.mean()) == pytest.approx(7.37, abs=0.15)


def test_many_thresholds_at_once_are_those_one_by_one():
    fading = Shadowed(Rician(4.0), 7.0)
    many = np.geomspace(1e-6, 1e4, 3000)
    at_once = fading.survival(many)
    np.testing.assert_allclose(at_once[::100], fading.survival(many[::100]), atol=1e-7)
    assert (np.diff(at_once) <= 1e-12).all()


# memory from round to round


def run(process, devices, rounds, seed=0):
    state, found = process.start(seed, devices), []
    for number in range(1, rounds + 1):
        drawn, state = process.step(state, seed, number, devices)
        found.append(drawn.copy())
    return np.stack(found)  # [round, device, part]


@pytest.mark.parametrize(
    "process", [Autoregressive(0.9), Autoregressive(-0.4), Jakes(0.1), Jakes(7.3)], ids=str
)
@pytest.mark.parametrize(
    ("fading", "cdf"),
    [MODELS["rayleigh"], MODELS["rician, strong"], MODELS["nakagami, better"]],
    ids=["rayleigh", "rician", "nakagami"],
)
def test_correlated_gains_keep_their_distribution_in_every_round(process, fading, cdf):
    for drawn in run(process, 15_000, 4)[[0, 3]]:
        assert stats.kstest(fading.from_scattering(drawn), cdf).pvalue > 1e-3


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.95, -0.3, 1.0, -1.0])
def test_ar1_rounds_are_correlated_by_powers_of_its_coefficient(correlation):
    drawn = run(Autoregressive(correlation), 40_000, 4)
    for apart in (1, 3):
        found = 2 * (drawn[0] * drawn[apart]).mean()
        assert found == pytest.approx(correlation**apart, abs=4 / math.sqrt(40_000))


def test_rayleigh_gains_are_correlated_by_the_square():
    """Of two complex Gaussian numbers with correlation a, the powers have a^2."""
    drawn = run(Autoregressive(0.8), 60_000, 2)
    first, second = (Rayleigh().from_scattering(each) for each in drawn)
    assert np.corrcoef(first, second)[0, 1] == pytest.approx(0.64, abs=0.02)


@pytest.mark.parametrize("cycles", [0.05, 0.2, 0.3827])
def test_jakes_rounds_are_correlated_by_bessels_function(cycles):
    drawn = run(Jakes(cycles), 40_000, 6)
    for apart in (1, 2, 5):
        products = (drawn[0] * drawn[apart]).sum(axis=1)
        expected = special.j0(2 * math.pi * cycles * apart)
        assert products.mean() == pytest.approx(expected, abs=4 / math.sqrt(40_000))


@pytest.mark.slow
@pytest.mark.parametrize("cycles", [0.05, 0.3827, 0.8])
def test_powers_under_jakes_are_correlated_by_the_square(cycles):
    power = (run(Jakes(cycles), 40_000, 13) ** 2).sum(axis=2)
    for apart in (1, 4, 12):
        expected = special.j0(2 * math.pi * cycles * apart) ** 2
        found = np.corrcoef(power[0], power[apart])[0, 1]
        assert found == pytest.approx(expected, abs=4 / math.sqrt(40_000))


@pytest.mark.slow
def test_no_device_is_persistently_better_under_jakes():
    """The variance of a mean over rounds follows from the correlation J_0^2 of the powers."""
    rounds, cycles = 800, 0.37
    means = (run(Jakes(cycles), 400, rounds) ** 2).sum(axis=2).mean(axis=0)
    lags = np.arange(1, rounds)
    correlation = special.j0(2 * math.pi * cycles * lags) ** 2
    expected = math.sqrt((1 + 2 * ((1 - lags / rounds) * correlation).sum()) / rounds)
    assert expected < 0.08
    assert means.mean() == pytest.approx(1, abs=4 * expected / math.sqrt(400))
    assert means.std() == pytest.approx(expected, rel=0.15)


def test_the_published_doppler_correlation():
    """J_0(1) = 0.7651976866, and its first zero is at 2.4048255577."""
    assert doppler_correlation(1 / (2 * math.pi), 1.0) == pytest.approx(0.7651976866, abs=1e-9)
    assert doppler_correlation(2.4048255577 / (2 * math.pi) / 10, 10.0) == pytest.approx(
        0, abs=1e-9
    )


@pytest.mark.parametrize("process", [Autoregressive(0.9), Jakes(0.1)], ids=str)
def test_scattering_is_a_function_of_seed_round_and_device(process):
    few, many = run(process, 20, 3), run(process, 50, 3)
    assert few.tolist() == many[:, :20].tolist()
    assert (run(process, 20, 1, seed=1) != few[:1]).all()


# the section


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, Rayleigh()),
        ({"fading": "none"}, NoFading()),
        ({"fading": "rician", "rician_k_db": 10.0}, Rician(10.0)),
        ({"fading": "nakagami", "nakagami_m": 0.5}, Nakagami(0.5)),
    ],
)
def test_the_section_names_the_model(keys, expected):
    assert build_fading(RadioSection(**keys)) == expected


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (Rician, -0.1),
        (Rician, math.nan),
        (Nakagami, 0.49),
        (Autoregressive, 1.0001),
        (Jakes, -1.0),
        (lambda sigma: Shadowed(Rayleigh(), sigma), -1.0),
    ],
)
def test_a_parameter_outside_its_range_is_refused_in_one_sentence(make, value):
    with pytest.raises(RequestError, match=r"^[^\n]* must be from [^\n]*$"):
        make(value)
