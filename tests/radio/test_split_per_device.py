"""Splits per device against SciPy's general optimisers and the closed form of the theory page."""

import itertools

import numpy as np
import pytest
from scipy.optimize import differential_evolution, minimize_scalar
from scipy.special import lambertw

from slimfl.devices import Population
from slimfl.experiment import RadioSection
from slimfl.radio import SignalMaker, Superposition, optimal_split_numeric, signal
from slimfl.radio.splits import bound_weights, first_outage_split, weighted_split

POOR = 10 ** ((-40 - 23) / 10) * 100**2.5


def decoding(rates, shares, ratio):
    """Equation (5) under Rayleigh fading, for the messages with a share."""
    coding = Superposition(tuple(rates[: len(shares)]), tuple(shares))
    return np.exp(-coding.thresholds(ratio))


def value(rates, shares, ratio, weights):
    probabilities = decoding(rates, shares, ratio)
    return float(np.asarray(weights[: len(shares)]) @ probabilities)


def reference(rates, ratio, weights):
    """The largest weighted sum over all splits of two messages, by a dense search of section IV."""
    first, second = 2.0 ** np.array(rates) - 1

    def total(share):
        margin = 1 - share - first * share
        with np.errstate(divide="ignore"):
            one = np.where(margin > 0, ratio * first / np.where(margin > 0, margin, 1), np.inf)
            two = np.maximum(one, ratio * second / share)
        return weights[0] * np.exp(-one) + weights[1] * np.exp(-two)

    grid = np.linspace(1e-6, 0.999, 20_000)
    best, step = grid[np.argmax(total(grid))], grid[1] - grid[0]
    polished = minimize_scalar(
        lambda share: -total(share), bounds=(max(best - step, 1e-9), best + step), method="bounded",
        options={"xatol": 1e-12},
    )  # fmt: skip
    alone = weights[0] * np.exp(-ratio * first)
    return max(-polished.fun, total(best), alone)


@pytest.mark.parametrize("rates", [(1.5, 1.5), (0.7, 0.7), (2.0, 0.4), (0.3, 2.5)])
@pytest.mark.parametrize("weights", [(1.0, 1.0), (1530.0, 3056.0), (1.0, 9.0), (5.0, 1.0)])
def test_two_messages_are_as_good_as_the_best_of_a_dense_search(rates, weights):
    for distance in (0.3, 0.8, 1.0, 1.3, 1.6, 1.8, 2.0, 3.0):
        ratio = POOR * distance**2.5
        shares = weighted_split(rates, ratio, weights)
        assert value(rates, shares, ratio, weights) >= reference(rates, ratio, weights) - 1e-9


def test_the_split_is_the_closed_form_in_terms_of_the_first_threshold():
    """t_2 = -2 W(-sqrt(q) / 2) and r from the budget: the theory page's curve, point by point."""
    target = 2**1.5 - 1
    k = np.array([target, target * (1 + target)])
    weights = np.array([1.0, 1.3])
    for first in (0.02, 0.1, 0.3, 0.5):
        q = first**2 * np.exp(-first) * (k[1] / weights[1]) * (weights[0] / k[0])
        second = -2 * lambertw(-np.sqrt(q) / 2).real
        ratio = 1 / (k / [first, second]).sum()
        share = ratio * target / second  # a_2 = P_2
        found = weighted_split([1.5, 1.5], ratio, weights.tolist())
        assert found == pytest.approx((1 - share, share), abs=1e-9)


@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (1.0, 2.0, 4.0), (3.0, 1.0, 0.5)])
@pytest.mark.parametrize("distance", [0.4, 1.0, 2.5])
def test_three_messages_against_a_global_optimiser(weights, distance):
    rates, ratio = (1.0, 1.0, 1.0), POOR * distance**2.5
    targets = 2.0 ** np.array(rates) - 1
    burdens = ratio * targets * np.cumprod([1, *(1 + targets[:-1])])

    def loss(x):
        budget = np.array([x[0], x[1] * (1 - x[0]), (1 - x[1]) * (1 - x[0])])
        thresholds = np.maximum.accumulate(burdens / np.maximum(budget, 1e-300))
        return -float(np.asarray(weights) @ np.exp(-thresholds))

    best = differential_evolution(loss, [(0, 1), (0, 1)], seed=0, tol=1e-12)
    shares = weighted_split(rates, ratio, weights)
    assert value(rates, shares, ratio, weights) >= -best.fun - 1e-7


def test_far_devices_send_the_first_segment_alone():
    assert weighted_split([1.5, 1.5], POOR * 3**2.5, [1, 1]) == (1.0,)
    near = weighted_split([1.5, 1.5], POOR * 0.5**2.5, [1, 1])
    assert near == pytest.approx((0.78, 0.22), abs=0.005)


@pytest.mark.parametrize("outage", [0.05, 0.2, 0.5])
def test_a_chosen_outage_is_kept_where_the_power_suffices(outage):
    target = 2**1.5 - 1
    kept = 0
    for distance in np.linspace(0.3, 3, 40):
        ratio = POOR * distance**2.5
        shares = first_outage_split([1.5, 1.5], ratio, outage)
        lost = 1 - decoding([1.5, 1.5], shares, ratio)[0]
        alone = 1 - np.exp(-ratio * target)
        together = 1 - np.exp(-ratio * ((1 + target) ** 2 - 1))
        if len(shares) == 2 and together < outage:
            assert lost == pytest.approx(together)  # all in one: even that is better than asked
        elif len(shares) == 2:
            assert lost == pytest.approx(outage)
            kept += 1
        else:
            assert alone >= outage - 1e-3
    assert kept


def test_alike_devices_get_the_split_that_makes_their_own_bound_smallest():
    weights = bound_weights([1.5, 1.5], [(POOR, 2, 10.0)])
    assert weighted_split([1.5, 1.5], POOR, weights) == pytest.approx(
        optimal_split_numeric([1.5, 1.5], POOR), abs=1e-3
    )


def test_no_common_weights_make_a_smaller_bound():
    rates = (1.5, 1.5)
    crowds = [(POOR * d**2.5, m, 1.0) for d in (0.4, 0.8, 1.2, 1.6, 2.0) for m in (1, 2)]

    def bound(weights):
        mean = np.zeros(2)
        for ratio, messages, _ in crowds:
            shares = weighted_split(rates[:messages], ratio, weights)
            mean[: len(shares)] += decoding(rates[:messages], shares, ratio) / len(crowds)
        return (1 / mean).sum() if mean.all() else np.inf

    found = bound(bound_weights(rates, crowds))
    assert found <= min(bound((1.0, w)) for w in np.geomspace(0.05, 100, 300)) * (1 + 1e-4)


def test_the_bound_beats_any_split_of_each_device():
    """The best of all combinations of some splits for every device is no better."""
    rates, ratios = (1.5, 1.5), [POOR * d**2.5 for d in (0.6, 1.1, 1.7)]
    weights = bound_weights(rates, [(ratio, 2, 1.0) for ratio in ratios])

    def bound(splits):
        mean = np.zeros(2)
        for ratio, shares in zip(ratios, splits, strict=True):
            mean[: len(shares)] += decoding(rates, shares, ratio) / len(ratios)
        return (1 / mean).sum() if mean.all() else np.inf

    choices = [(1.0,), *((1 - s, s) for s in np.linspace(0.02, 0.26, 25))]
    every = min(bound(splits) for splits in itertools.product(choices, repeat=3))
    assert bound([weighted_split(rates, ratio, weights) for ratio in ratios]) <= every * (1 + 1e-6)


def population(distances, able):
    count = len(distances)
    return Population(
        np.arange(count), np.ones(count, np.int64), np.asarray(able), np.full(count, 23.0),
        np.asarray(distances, float),
    )  # fmt: skip


def test_a_million_devices_have_a_few_hundred_signals():
    section = RadioSection(split="per-device", rates="equal")
    maker = SignalMaker(section, 2, (1.0, 2.0))
    random = np.random.default_rng(0)
    devices = population(random.uniform(30, 300, 10**6), random.integers(0, 2, 10**6))
    ratios = POOR * (devices.distance_m / 100) ** 2.5
    maker.look_at(devices, ratios, [1530, 3056])
    messages = [((0,), (1,)) if able else ((0,),) for able in devices.max_width[:5000].tolist()]
    signals = maker.signals(messages, ratios[:5000])
    assert len({id(each) for each in signals}) < 600
    pairs = zip(signals, devices.max_width[:5000].tolist(), strict=True)
    assert all(len(sent.messages) <= able + 1 for sent, able in pairs)
    # a step of the grid costs next to nothing
    for row in range(0, 5000, 500):
        if len(messages[row]) == 2:
            exact = weighted_split((1.5, 1.5), ratios[row], maker.weights)
            got = value((1.5, 1.5), signals[row].coding.split, ratios[row], maker.weights)
            assert got == pytest.approx(
                value((1.5, 1.5), exact, ratios[row], maker.weights), rel=1e-3
            )


def test_without_a_split_per_device_signals_are_as_ever():
    section = RadioSection(rates="equal")
    maker = SignalMaker(section, 2, (1.0, 2.0))
    [made] = maker.signals([((0,), (1,))], np.array([0.05]))
    assert made == signal(section, ((0,), (1,)), 2, (1.0, 2.0))
    assert made.coding == Superposition((1.5, 1.5), (0.8, 0.2))
