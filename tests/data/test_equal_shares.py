"""Equal shares: all devices get the same number, close to their wishes, in no fixed order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import chi2

from slimfl.data.partitions import equal_shares


def draw(seed, devices, alpha, classes=10, stock=600):
    """Mixes, a balanced stock and the shares made of them."""
    random = np.random.default_rng(seed)
    mixes = random.dirichlet(np.full(classes, alpha), size=devices)
    each = classes * stock // devices
    return mixes, each, equal_shares(mixes, np.full(classes, stock), each, random)


@settings(deadline=None, max_examples=150)
@given(st.data(), st.integers(0, 2**32))
def test_rows_are_equal_and_no_class_is_overdrawn(data, seed):
    random = np.random.default_rng(seed)
    stock = np.array(data.draw(st.lists(st.integers(0, 60), min_size=1, max_size=8)))
    devices = data.draw(st.integers(1, 20))
    alpha = data.draw(st.sampled_from([1e-8, 0.05, 1.0, 1e5]))
    mixes = random.dirichlet(np.full(len(stock), alpha), size=devices)
    each = int(stock.sum()) // devices
    shares = equal_shares(mixes, stock, each, random)
    assert (shares >= 0).all()
    assert (shares.sum(axis=1) == each).all()
    assert (shares.sum(axis=0) <= stock).all()


def test_a_mix_that_the_stock_allows_is_had_to_the_last_sample():
    mixes = np.random.default_rng(0).dirichlet(np.full(6, 0.5), size=40)
    shares = equal_shares(mixes, np.full(6, 100_000), 1000, np.random.default_rng(1))
    assert np.abs(shares - 1000 * mixes).max() < 1


@pytest.mark.parametrize("alpha", [0.05, 0.5, 5.0])
def test_no_more_is_taken_from_what_was_wanted_than_the_stock_demands(alpha):
    """The least sum of |got - wanted|, by linear programming, up to the rounding of a mix."""
    for seed in range(5):
        mixes, each, shares = draw(seed, devices=8, alpha=alpha, classes=5, stock=400)
        wanted = each * mixes
        cells = wanted.size
        # variables: got, and the two sides of its difference from what was wanted
        rows = np.kron(np.eye(8), np.ones(5))
        columns = np.kron(np.ones(8), np.eye(5))
        unused = np.zeros((len(rows), 2 * cells))
        least = linprog(
            np.repeat([0.0, 1.0], [cells, 2 * cells]),
            A_ub=np.hstack([columns, np.zeros((5, 2 * cells))]),
            b_ub=np.full(5, 400),
            A_eq=np.block([[rows, unused], [np.eye(cells), -np.eye(cells), np.eye(cells)]]),
            b_eq=np.concatenate([np.full(8, each), wanted.ravel()]),
        ).fun
        assert least - 1e-6 <= np.abs(shares - wanted).sum() < least + cells


def differs_by_index(deviations):
    """How unlikely it is that means [seed, device] differ this much by the device's number alone.

    Under exchangeable devices, the sum of squares of the standardised means is about chi-square.
    """
    seeds, devices = deviations.shape
    centred = deviations - deviations.mean(axis=1, keepdims=True)
    # rows sum to zero, which takes a share 1/devices of every variance
    variance = centred.var() * devices / (devices - 1)
    statistic = seeds * (centred.mean(axis=0) ** 2).sum() / variance
    return chi2.sf(statistic, devices - 1)


@pytest.mark.parametrize("alpha", [0.05, 0.5, 5.0])
def test_what_a_device_misses_does_not_depend_on_its_number(alpha):
    missed = []
    for seed in range(400):
        mixes, each, shares = draw(seed, devices=10, alpha=alpha)
        missed.append(np.abs(shares / each - mixes).sum(axis=1))
    missed = np.array(missed)
    assert missed.mean() > 0.05  # the stock does bind
    assert differs_by_index(missed) > 1e-3
