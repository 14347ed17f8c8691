"""Gains: exponential, the same for all methods, independent of the number of devices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from slimfl.experiment import RadioSection
from slimfl.radio import Rayleigh
from slimfl.radio.fading import build_fading


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**40), st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 60))
def test_a_devices_gain_does_not_depend_on_the_number_of_devices(seed, round, few, many):
    few, many = sorted((few, many))
    fading = Rayleigh()
    assert np.array_equal(fading.gains(seed, round, few), fading.gains(seed, round, many)[:few])


def test_two_methods_under_one_seed_meet_the_same_channel():
    one, other = Rayleigh(), build_fading(RadioSection())
    one.gains(9, 1, 100)  # another order of rounds
    for number in (1, 2, 3):
        assert np.array_equal(one.gains(0, number, 10), other.gains(0, number, 10))


def test_rounds_seeds_and_devices_have_gains_of_their_own():
    fading = Rayleigh()
    gains = np.stack([fading.gains(seed, n, 20) for seed in (0, 1) for n in (1, 2, 3)])
    assert len(np.unique(gains)) == gains.size


def test_gains_are_exponential_across_devices():
    gains = Rayleigh().gains(0, 1, 20_000)
    assert stats.kstest(gains, "expon").pvalue > 1e-3
    assert gains.min() >= 0


def test_gains_are_exponential_across_rounds_and_rounds_are_independent():
    """One device over many rounds: what a run sees."""
    gains = np.array([Rayleigh().gains(0, number, 3)[2] for number in range(1, 3001)])
    assert stats.kstest(gains, "expon").pvalue > 1e-3
    assert abs(np.corrcoef(gains[:-1], gains[1:])[0, 1]) < 4 / np.sqrt(3000)


def test_survival_is_the_chance_to_reach_a_threshold():
    fading = Rayleigh()
    thresholds = np.array([0.0, 0.1, 1.0, 3.0])
    np.testing.assert_allclose(fading.survival(thresholds), stats.expon.sf(thresholds))
    gains = fading.gains(3, 1, 100_000)
    for threshold, expected in zip(thresholds, fading.survival(thresholds), strict=True):
        error = np.sqrt(expected * (1 - expected) / 100_000)
        assert abs(np.mean(gains >= threshold) - expected) <= 4 * error + 1e-12


def test_no_devices_no_gains():
    assert Rayleigh().gains(0, 1, 0).shape == (0,)


@pytest.mark.parametrize("threshold", [0, 1])
def test_survival_takes_whole_numbers(threshold):
    assert Rayleigh().survival(np.array([threshold]))[0] == pytest.approx(np.exp(-threshold))
