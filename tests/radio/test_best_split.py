"""Numerically best splits against a grid, the exact optimum for Rayleigh, and by hand."""

import math

import numpy as np
import pytest

from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.radio import (
    Nakagami,
    Rayleigh,
    Rician,
    Superposition,
    best_split,
    inverse_probability_sum,
    optimal_split_numeric,
    power_split,
    section_probabilities,
    signal,
)
from slimfl.radio.coding import InTurnAtLowerPower, InTurnInShorterTime
from slimfl.radio.splits import delivered, objective_of, split_of_margins, with_first_outage

RATES = (1.5, 1.5)


def arrives(fading, rates, c_over_p, residual=0.0):
    def probabilities(split):
        return fading.survival(Superposition(rates, split, residual).thresholds(c_over_p))

    return probabilities


@pytest.mark.parametrize("c_over_p", [0.001, 0.05, 0.3])
@pytest.mark.parametrize("rates", [(1.5, 1.5), (0.7, 1.2), (2.0, 0.3), (1.0, 1.0, 1.0), (0.5,) * 5])
def test_for_rayleigh_and_the_bound_it_is_the_exact_optimum(rates, c_over_p):
    probabilities = arrives(Rayleigh(), rates, c_over_p)
    found = inverse_probability_sum(probabilities(best_split(probabilities, rates)))
    exact = inverse_probability_sum(probabilities(optimal_split_numeric(rates, c_over_p)))
    assert found == pytest.approx(exact, rel=1e-7)


@pytest.mark.parametrize("fading", [Rician(5.0), Nakagami(3.0)], ids=str)
@pytest.mark.parametrize(
    ("objective", "cost"),
    [
        (inverse_probability_sum, lambda p: (1 / p).sum()),
        (delivered((1.0, 2.0)), lambda p: -(p[0] + 2 * p[1])),
    ],
    ids=["bound", "delivered"],
)
def test_no_split_on_a_grid_is_better(fading, objective, cost):
    probabilities = arrives(fading, RATES, 0.08)
    best = cost(probabilities(best_split(probabilities, RATES, objective)))
    with np.errstate(divide="ignore"):
        grid = [cost(probabilities((s, 1 - s))) for s in np.linspace(0.648, 0.999, 400)]
    assert best <= min(grid) + 1e-9
    assert best == pytest.approx(min(grid), rel=1e-3)


def test_a_chosen_outage_of_segment_1_is_met_and_the_rest_is_as_good_as_can_be():
    probabilities = arrives(Rayleigh(), (1.0, 1.0, 1.0), 0.02)
    free = best_split(probabilities, (1.0,) * 3)
    outage = 1 - probabilities(free)[0]
    strict = best_split(probabilities, (1.0,) * 3, with_first_outage(outage / 1.1))
    found = probabilities(strict)
    assert 1 - found[0] == pytest.approx(outage / 1.1, rel=1e-6)
    # the other two share what is left: no other share of it is better
    rest = 1 - strict[0]
    for share in np.linspace(0.67, 0.99, 60) * rest:
        other = (strict[0], share, rest - share)
        try:
            assert inverse_probability_sum(probabilities(other)) >= (1 / found).sum() - 1e-6
        except RequestError:
            continue
    # an outage that the best split has anyway changes nothing
    easy = best_split(probabilities, (1.0,) * 3, with_first_outage(0.5))
    assert easy == pytest.approx(free, abs=1e-6)


def test_an_outage_that_no_split_reaches_names_the_smallest():
    probabilities = arrives(Rayleigh(), RATES, 0.05)
    least = 1 - math.exp(-0.05 * (2**1.5 - 1))
    with pytest.raises(RequestError, match=f"at least {least:.3g} with any split"):
        best_split(probabilities, RATES, with_first_outage(0.01))


def test_residual_interference_shifts_the_optimum():
    probabilities = arrives(Rician(3.0), RATES, 0.05, residual=0.1)
    found = best_split(probabilities, RATES, residual=0.1)
    grid = np.linspace(0.66, 0.84, 300)
    costs = []
    for share in grid:
        try:
            costs.append((1 / probabilities((share, 1 - share))).sum())
        except RequestError:
            costs.append(math.inf)
    assert (1 / probabilities(found)).sum() <= min(costs) + 1e-9
    assert found[0] == pytest.approx(grid[int(np.argmin(costs))], abs=2e-3)
    with pytest.raises(RequestError, match="no power split can be decoded"):
        best_split(probabilities, (3.0, 3.0), residual=0.9)


@pytest.mark.parametrize("residual", [0.0, 0.02])
def test_margins_and_splits_are_two_names_of_one_thing(residual):
    targets = 2 ** np.array([0.5, 1.0, 0.7]) - 1
    margins = np.array([2.0, 1.0, 0.5])
    split = split_of_margins(targets, margins, residual)
    thresholds = targets / Superposition((0.5, 1.0, 0.7), split, residual).margins()
    np.testing.assert_allclose(thresholds * margins, (thresholds * margins)[0])


# as a section asks for it


@pytest.mark.parametrize(
    "keys",
    [
        {"fading": "rician"},
        {"fading": "nakagami", "shadowing_db": 6.0},
        {"max_attempts": 2},
        {"residual_interference": 0.05},
        {"decoder": "normal", "codeword_symbols": 200},
        {"path_loss": "umi", "noise_dbm": -95.0},
        {"split_objective": "delivered"},
        {"multiplexing": "orthogonal-energy"},
        {"multiplexing": "orthogonal-airtime"},
    ],
    ids=str,
)
def test_the_numeric_split_of_a_section_beats_its_neighbours(keys):
    given = {"noise_dbm": -42.0, "rates": "equal", **keys, "split": "optimal-numeric"}
    section = RadioSection(**given)
    bits = (1000.0, 2000.0)
    best = power_split(section, RATES, bits)
    objective = objective_of(section, bits, 2)

    def cost(split):
        there = section.model_copy(update={"split": split})
        sent = signal(there, ((0,), (1,)), 2, bits)
        return objective(section_probabilities(there, sent.coding, bits))

    for step in (-0.01, 0.01):
        try:
            near = cost((best[0] + step, best[1] - step))
        except RequestError:
            continue
        assert cost(best) <= near + 1e-9


def test_the_papers_section_keeps_the_exact_optimum_to_the_bit():
    section = RadioSection(split="optimal-numeric", noise_dbm=-45)
    exact = optimal_split_numeric(RATES, 10 ** ((-45 - 23) / 10) * 100.0**2.5)
    assert power_split(section, RATES) == exact


# segments in turn


def test_in_turn_with_the_same_energy():
    coding = InTurnAtLowerPower(RATES, (0.7, 0.3))
    target = 2**1.5 - 1
    assert coding.thresholds(0.1) == pytest.approx([0.1 * target / 0.7, 0.1 * target / 0.3])
    bits = (3000.0, 1500.0)
    airtime, full_power = coding.durations_s(bits, 1e3)
    assert airtime == pytest.approx(2 + 1)
    assert full_power == pytest.approx(0.7 * 2 + 0.3 * 1)
    # equal segments: exactly the energy of the superposed signal
    equal = coding.durations_s((1500.0, 1500.0), 1e3)
    assert equal == pytest.approx((2.0, 1.0))
    assert Superposition(RATES, (0.7, 0.3)).durations_s((1500.0, 1500.0), 1e3) == (1.0, 1.0)


def test_in_turn_in_the_same_airtime():
    coding = InTurnInShorterTime(RATES, (0.6, 0.4))
    needed = [2 ** (1.5 / 0.6) - 1, 2 ** (1.5 / 0.4) - 1]
    assert coding.thresholds(0.1) == pytest.approx([0.1 * needed[0], 0.1 * needed[1]])
    bits = (1000.0, 3000.0)
    sized = InTurnInShorterTime(RATES, (0.6, 0.4), bits)
    together, _ = Superposition(RATES, (0.8, 0.2)).durations_s(bits, 1e3)
    assert sized.durations_s(bits, 1e3) == (together, together)
    for i in (0, 1):  # each fits into its share of that time
        assert bits[i] / (sized.rates[i] * 1e3) == pytest.approx(sized.split[i] * together)


def test_superposition_is_never_worse_than_taking_turns():
    """The degraded broadcast channel: time sharing lies inside the superposition region."""
    for noise in (-50, -42, -36):
        best = {}
        for how in ("superposition", "orthogonal-airtime"):
            section = RadioSection(noise_dbm=noise, multiplexing=how, split="optimal-numeric")
            coding = signal(section, ((0,), (1,)), 2).coding
            best[how] = inverse_probability_sum(section_probabilities(section, coding))
        assert best["superposition"] <= best["orthogonal-airtime"] + 1e-9


def test_a_message_in_turn_waits_for_those_before_it():
    assert InTurnAtLowerPower((2.0, 0.1), (0.5, 0.5)).thresholds(1.0) == pytest.approx([6.0, 6.0])
    with pytest.raises(RequestError, match="sum to 1"):
        InTurnInShorterTime(RATES, (0.5, 0.6))


# rates by size


def test_rates_by_size_give_all_segments_the_same_time():
    section = RadioSection(spectral_efficiency=1.5)
    bits = (48_960.0, 97_792.0)
    sent = signal(section, ((0,), (1,)), 2, bits)
    rates = sent.coding.spectral_efficiencies
    assert sum(rates) == pytest.approx(3.0)
    times = [size / rate for size, rate in zip(bits, rates, strict=True)]
    assert times[0] == pytest.approx(times[1])
    equal = signal(RadioSection(rates="equal"), ((0,), (1,)), 2, bits)
    assert sent.airtime_s(75e6) < equal.airtime_s(75e6)
    assert sent.airtime_s(75e6) == pytest.approx(sum(bits) / 3.0 / 75e6)
    unknown = signal(section, ((0,), (1,)), 2)
    assert unknown.coding.spectral_efficiencies == (1.5, 1.5), "then all are equally large"
