"""The one module of statistics against SciPy's own tests and plain definitions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from slimfl.results.statistics import (
    equivalence_margin,
    fluctuation,
    holm,
    paired,
    pooled_deviation,
    selection_fluctuation,
    with_pooled_deviation,
)

SAMPLES = st.lists(st.floats(-20, 20), min_size=2, max_size=9)


def by_seed(values):
    return dict(enumerate(values, 100))


@given(SAMPLES, st.integers(0, 2**32 - 1))
def test_student_is_scipys_paired_test(values, seed):
    first = np.array(values)
    second = first + np.random.default_rng(seed).normal(0.3, 1, len(first))
    found, expected = paired(by_seed(first), by_seed(second)), stats.ttest_rel(first, second)
    assert found.mean == pytest.approx(np.mean(first - second))
    assert found.p_student == pytest.approx(expected.pvalue, rel=1e-6)
    low, high = found.interval()
    assert (low, high) == pytest.approx(tuple(expected.confidence_interval(0.95)), rel=1e-6)
    assert found.told_apart == (expected.pvalue < 0.05)


@given(st.lists(st.floats(-20, 20).filter(lambda x: abs(x) > 1e-6), min_size=2, max_size=7))
def test_sign_flip_is_scipys_exact_permutation_test(values):
    found = paired(by_seed(values), by_seed([0.0] * len(values)))
    expected = stats.permutation_test(
        (values, [0.0] * len(values)),
        lambda x, y: np.abs(np.sum(x - y)),
        permutation_type="samples",
        alternative="greater",
        n_resamples=np.inf,
    )
    assert found.p_sign_flip == pytest.approx(expected.pvalue)


def test_five_seeds_in_one_direction_cannot_be_below_one_sixteenth():
    found = paired(by_seed([5.8, 1.8, 2.1, 2.7, 0.8]), by_seed([0.0] * 5))
    assert found.p_sign_flip == 2 / 2**5
    assert found.ahead == 5


def test_only_seeds_that_both_have_are_paired():
    found = paired({1: 2.0, 2: 5.0, 3: 1.0}, {2: 4.0, 3: 3.0, 4: 9.0})
    assert found.by_seed == {2: 1.0, 3: -2.0}
    assert paired({1: 1.0}, {2: 1.0}) is None
    assert paired({1: math.nan}, {1: 1.0}) is None


def test_one_seed_has_no_interval_and_no_verdict():
    found = paired({1: 2.0}, {1: 1.0})
    assert (found.interval(), found.p_student, found.told_apart) == (None, None, False)


def test_a_ratio_is_the_geometric_mean():
    found = paired({1: 2.0, 2: 8.0}, {1: 1.0, 2: 1.0}, ratio=True)
    assert found.mean == pytest.approx(4.0)
    low, high = found.interval()
    assert low * high == pytest.approx(16.0)  # symmetric in the logarithm


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_by_its_definition(p_values):
    """Reject while p_(k) <= level / (m - k + 1); the adjusted value is where that turns."""
    adjusted = holm(p_values)
    for level in (0.01, 0.05, 0.2, 0.9):
        rejected, order = set(), sorted(range(len(p_values)), key=lambda i: p_values[i])
        for rank, index in enumerate(order):
            if p_values[index] * (len(order) - rank) > level:
                break
            rejected.add(index)
        assert {i for i, p in enumerate(adjusted) if p <= level} == rejected


def test_pooling_keeps_means_and_shares_one_deviation():
    noisy = paired(by_seed([1.0, 9.0, 2.0]), by_seed([0.0] * 3))
    quiet = paired(by_seed([4.0, 4.1, 3.9]), by_seed([0.0] * 3))
    pooled = with_pooled_deviation([noisy, quiet])
    assert [each.mean for each in pooled] == [noisy.mean, quiet.mean]
    widths = [high - low for low, high in (each.interval() for each in pooled)]
    assert widths[0] == pytest.approx(widths[1])
    expected = math.sqrt((np.var([1, 9, 2], ddof=1) + np.var([4, 4.1, 3.9], ddof=1)) / 2)
    assert pooled_deviation([[1.0, 9.0, 2.0], [4.0, 4.1, 3.9]])[0] == pytest.approx(expected)


def test_equivalence_margin_is_where_two_one_sided_tests_turn():
    values = [0.4, -0.2, 0.5, 0.1, 0.3]
    margin = equivalence_margin(paired(by_seed(values), by_seed([0.0] * 5)))
    above = stats.ttest_1samp(values, margin, alternative="less").pvalue
    below = stats.ttest_1samp(values, -margin, alternative="greater").pvalue
    assert max(above, below) == pytest.approx(0.05)


def test_fluctuation_is_the_deviation_of_noise_and_ignores_a_trend():
    random = np.random.default_rng(3)
    noise = random.normal(0, 2, 20_000)
    # the relative error of the estimate is about sqrt(3 / 4n)
    assert fluctuation(noise) == pytest.approx(2, rel=5 * math.sqrt(0.75 / 20_000))
    assert fluctuation(noise + np.linspace(0, 300, 20_000)) == pytest.approx(
        fluctuation(noise), rel=0.01
    )


def test_selection_fluctuation_is_that_of_a_mean_over_who_arrives():
    """Many rounds in which each of 40 devices with fixed values arrives with p."""
    random, devices, p = np.random.default_rng(5), 40, 0.6
    values = random.normal(0, 1, devices)
    values -= values.mean()
    means = [values[random.random(devices) < p].mean() for _ in range(20_000)]
    expected = selection_fluctuation(p, devices) * values.std(ddof=1)
    assert np.std(means) == pytest.approx(expected, rel=0.05)  # (K p) is random: O(1 / Kp)
