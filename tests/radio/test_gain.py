"""What superposition can gain, against the simulation's own thresholds and plain optimisation."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize, minimize_scalar

from slimfl.errors import RequestError
from slimfl.radio.gain import (
    best_gain,
    break_even,
    ceiling,
    largest_gain,
    most_favourable_snr,
    price_of_a_safer_base_db,
    snr_of_thresholds,
)

#: Two, three and four segments.
SEVERAL = [(1.0, 2.0), (0.4, 0.9, 1.7), (0.3, 0.5, 0.9, 1.3)]


def best_by_plain_search(snr, rates, worth):
    """The largest sum of w_i exp(-t_i), over thresholds that rise and cost the given SNR."""
    added = np.diff(worth, prepend=0.0)
    levels = 2.0 ** np.cumsum(rates)
    cost = np.diff(levels, prepend=1.0)

    def thresholds(logs):
        rising = np.cumsum(np.concatenate([[1.0], np.exp(logs)]))
        return rising * (cost / rising).sum() / snr  # scaled to the SNR

    starts = [np.full(len(rates) - 1, level) for level in (-6.0, -2.0, 0.0, 2.0)]
    options = {"xatol": 1e-8, "fatol": 1e-13, "maxiter": 20_000, "maxfev": 20_000}

    def loss(logs):
        return -added @ np.exp(-thresholds(logs))

    ends = [minimize(loss, start, method="Nelder-Mead", options=options) for start in starts]
    return -min(end.fun for end in ends)


@pytest.mark.parametrize(
    ("rates", "worth"),
    [((1.5, 1.5), (0.7, 1)), ((1, 2), (0.9, 1)), ((0.4, 0.9, 1.7), (0.5, 0.8, 1)),
     ((0.3, 0.5, 0.9, 1.3), (0.4, 0.6, 0.9, 1))],
)  # fmt: skip
@pytest.mark.parametrize("snr", [4.0, 12.0, 40.0])
def test_the_gain_is_the_numeric_optimum_and_below_the_ceiling(rates, worth, snr):
    found = best_gain(snr, rates, worth)
    assert found.superposed == pytest.approx(best_by_plain_search(snr, rates, worth), rel=1e-4)
    assert -1e-4 <= found.share <= ceiling(worth) - 1
    probabilities = np.exp(-(2.0 ** np.cumsum(rates) - 1) / snr)
    assert found.single == pytest.approx(max(np.array(worth) * probabilities))


@pytest.mark.parametrize(
    ("rates", "model"), [(rates, m) for rates in SEVERAL for m in range(1, len(rates))]
)
def test_superposition_beats_one_message_just_above_break_even(rates, model):
    """One narrower model is worth something of its own, at an SNR at which little is lost."""
    snr = 1e4
    one = np.exp(-(2 ** sum(rates) - 1) / snr)
    for factor, better in ((0.9, False), (1.1, True)):
        worth = np.zeros(len(rates))
        worth[model - 1 : -1] = factor * break_even(rates)[model - 1]
        worth[-1] = 1.0
        found = best_by_plain_search(snr, rates, worth)
        assert ((1 - found) / (1 - one) < 1 - 1e-5) == better


def least_power(rates, thresholds):
    """Over noise, by linear programming: each message's SINR suffices at its threshold."""
    targets = 2.0 ** np.asarray(rates) - 1
    interferes = np.triu(np.ones((len(rates), len(rates))), 1) * targets[:, None]
    found = linprog(np.ones(len(rates)), interferes - np.eye(len(rates)), -targets / thresholds)
    return found.fun


@pytest.mark.parametrize("rates", SEVERAL)
def test_the_power_identity_is_the_least_power_of_a_linear_programme(rates):
    random = np.random.default_rng(len(rates))
    for _ in range(5):
        thresholds = np.sort(random.uniform(0.01, 2.0, len(rates)))
        expected = least_power(rates, thresholds)
        assert snr_of_thresholds(rates, thresholds) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(("share", "price"), [(1 / 2, 1.01), (1 / 3, 0.58), (1 / 8, 0.18)])
def test_the_price_of_a_safer_base(share, price):
    rates = (3 * share, 3 * (1 - share))
    assert price_of_a_safer_base_db(rates, 2) == pytest.approx(price, abs=0.006)


@pytest.mark.parametrize("rates", SEVERAL)
@pytest.mark.parametrize("factor", [1.3, 2.0, 10.0])
def test_a_safer_base_costs_the_power_of_a_linear_programme(rates, factor):
    one, safer = np.full(len(rates), 0.5), np.full(len(rates), 0.5)
    safer[0] /= factor
    ratio = least_power(rates, safer) / least_power(rates, one)
    assert price_of_a_safer_base_db(rates, factor) == pytest.approx(10 * np.log10(ratio), rel=1e-8)


@pytest.mark.parametrize("share", [1 / 2, 1 / 3, 1 / 8])
@pytest.mark.parametrize("omega", [0.6, 0.9])
def test_the_most_favourable_snr_is_where_a_search_finds_the_largest_gain(share, omega):
    rates, worth = (3 * share, 3 * (1 - share)), (omega, 1.0)

    def loss(snr_db):
        snr = 10 ** (snr_db / 10)
        one = max(np.array(worth) * np.exp(-(2.0 ** np.cumsum(rates) - 1) / snr))
        return -best_by_plain_search(snr, rates, worth) / one

    formula_db = 10 * np.log10(most_favourable_snr(rates, omega))
    best_db = minimize_scalar(
        loss, bounds=(formula_db - 5, formula_db + 5), method="bounded", options={"xatol": 1e-3}
    ).x
    assert best_db == pytest.approx(formula_db, abs=0.25)


@pytest.mark.parametrize("snr", [3.0, 10.0, 20.0, 60.0])
def test_no_worth_of_the_base_gains_more_than_the_largest_gain(snr):
    rates = (1.0, 2.0)
    largest, worth = largest_gain(snr, rates)
    others = [best_gain(snr, rates, (omega, 1.0)).share for omega in np.linspace(0.05, 1, 14)]
    assert max(others) <= largest + 1e-6
    assert max(others) >= largest - 0.05
    assert largest <= ceiling((worth, 1.0)) - 1


@pytest.mark.parametrize("worth", [(0.0, 1.0), (0.9, 0.8, 1.0), (0.5, 0.9)])
def test_worths_that_make_no_sense_are_refused(worth):
    with pytest.raises(RequestError, match="worth"):
        ceiling(worth)
