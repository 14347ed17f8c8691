"""Theorem 1, the propositions and the advice, against their definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slimfl.experiment import RadioSection
from slimfl.radio import bound as theory
from slimfl.radio.link import noise_to_power

probability = st.floats(0.05, 1.0)


def test_the_papers_constant_at_two_segments_is_lemma_1():
    p1, p2, w1, w2, delta = 0.81, 0.63, 0.3, 0.7, 2.5
    expected = 4 * delta * (1 / p1 + 1 / p2) * (w1**2 + w2**2)
    assert theory.paper_constant(delta, [p1, p2], [w1, w2]) == pytest.approx(expected)


@given(st.lists(probability, min_size=1, max_size=5), st.integers(1, 100))
def test_the_sharper_constant_is_smaller_by_segments_times_devices(probabilities, devices):
    weights = theory.optimal_weights(len(probabilities))
    paper = theory.paper_constant(1.0, probabilities, weights)
    sharp = theory.sharp_constant(1.0, probabilities, weights, devices)
    assert paper / sharp == pytest.approx(len(probabilities) * devices)
    k, s = devices, len(probabilities)
    by_definition = s / k * sum(1 / p for p in probabilities) * sum(w * w for w in weights)
    assert sharp == pytest.approx(by_definition)


def test_the_tight_constant_has_all_noise_in_the_worst_segment():
    weights, p = (0.2, 0.3, 0.5), (0.9, 0.5, 0.1)
    by_hand = max(1.0**2 / 0.9, 0.8**2 / 0.5, 0.5**2 / 0.1)
    assert theory.tight_constant(3.0, p, weights, 4) == pytest.approx(3 / 4 * by_hand)
    assert theory.tight_constant(1.0, (0.5, 0.0), (0.5, 0.5), 4) == np.inf


def test_the_learning_rate_never_exceeds_one_over_l():
    rates = theory.learning_rate(np.arange(1, 1000), smoothness=3.0, strong_convexity=0.5)
    assert rates[0] == pytest.approx(1 / 3)
    assert (np.diff(rates) < 0).all()


@settings(max_examples=30, deadline=None)
@given(
    st.floats(0.1, 10),
    st.floats(0.05, 1),
    st.floats(0, 10),
    st.floats(0, 10),
)
def test_the_bound_covers_the_recursion_of_lemma_2(smoothness, share, start, constant):
    """Iterate Delta_{t+1} = (1 - mu eta) Delta_t + eta^2 B, then use L-smoothness."""
    mu = share * smoothness
    t = np.arange(1, 300)
    eta = theory.learning_rate(t, smoothness, mu)
    delta = [start]
    for rate in eta[:-1]:
        delta.append((1 - mu * rate) * delta[-1] + rate**2 * constant)
    gap = smoothness / 2 * np.array(delta)
    assert (
        gap <= theory.theorem1_bound(t, smoothness, mu, start, constant) * (1 + 1e-9) + 1e-12
    ).all()


def test_the_bound_is_equation_10():
    L, mu, start, b, t = 2.0, 0.4, 3.0, 1.7, 12
    expected = L / mu * (mu * L * start + 2 * b) / (mu * t + 2 * L - mu)
    assert theory.theorem1_bound(t, L, mu, start, b) == pytest.approx(expected)


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=6))
def test_equal_weights_are_the_best(raw):
    weights = np.array(raw) / sum(raw)
    best = theory.optimal_weights(len(raw))
    assert theory.paper_constant(1, [0.5], best) <= theory.paper_constant(1, [0.5], weights) + 1e-9


def test_a_segment_that_never_arrives_makes_the_bound_infinite():
    assert theory.inverse_probability_sum([0.5, 0.0]) == np.inf


WIDTHS = (0.5, 1.0)


@pytest.mark.parametrize(
    ("noise_dbm", "expected"),
    [(-70, "vanilla-1.0x"), (-40, "slimfl"), (-36, "slimfl"), (-28, "vanilla-0.5x")],
)
def test_advice_follows_section_v(noise_dbm, expected):
    section = RadioSection(noise_dbm=noise_dbm, split="optimal")
    advice = theory.advise(section, WIDTHS, devices=10)
    assert advice.method == expected
    assert advice.reason


@pytest.mark.parametrize(
    ("keys", "methods", "words"),
    [
        ({}, ("slimfl", "vanilla-1.0x"), "D = 2.84, less than 1% apart; the best split, 0.772"),
        ({"split": "optimal"}, ("slimfl",), "D = 2.84"),
        ({"split": "optimal", "noise_dbm": -45}, ("slimfl", "vanilla-1.0x"), "1% apart"),
        ({"split": (0.9, 0.1)}, ("slimfl",), "this split wastes power, 0.772"),
        ({"spectral_efficiency": 0.75}, ("slimfl", "vanilla-1.0x"), "even the best split, 0.663"),
    ],
)  # fmt: skip
def test_terms_within_one_percent_are_a_tie(keys, methods, words):
    """By hand: exp(0.211) + exp(0.458) = 2.816 and 2 exp(0.351) = 2.841 at the paper's split."""
    advice = theory.advise(RadioSection(**keys), WIDTHS, devices=10)
    assert advice.methods == methods
    assert words in advice.reason
    assert advice.is_tie == (len(methods) == 2)
    assert (advice.method is None) == advice.is_tie


def test_advice_never_loses_to_one_message_once_the_split_it_names_is_taken():
    for noise_dbm in range(-44, -31):
        section = RadioSection(noise_dbm=noise_dbm, split="optimal-numeric")
        advice = theory.advise(section, WIDTHS, devices=100)
        assert advice.terms["slimfl"] <= advice.terms["vanilla-1.0x"] * (1 + 1e-9)


def test_more_devices_stretch_the_range_in_which_slimfl_works():
    section = RadioSection(noise_dbm=-31)
    assert theory.advise(section, WIDTHS, devices=5).method == "vanilla-0.5x"
    assert theory.advise(section, WIDTHS, devices=1000).method == "slimfl"


@pytest.mark.parametrize("noise_dbm", [-46.0, -40.0, -36.0])
@pytest.mark.parametrize("split", [(0.5, 0.5), (0.7, 0.3)])
def test_segments_in_turn_are_compared_with_one_message_of_their_airtime(noise_dbm, split):
    """They take twice the airtime: against a message of half of it they would always be advised."""
    section = RadioSection(
        noise_dbm=noise_dbm, rates="equal", multiplexing="orthogonal-energy", split=split
    )
    advice = theory.advise(section, WIDTHS, devices=10)
    assert advice.method != "slimfl"
    # by hand: half the rate of the whole model, which is one segment's, at half the power
    needed = 2 * (2**1.5 - 1) * noise_to_power(section)
    assert advice.terms["vanilla-1.0x"] == pytest.approx(2 * np.exp(needed))
    assert advice.terms["slimfl"] >= advice.terms["vanilla-1.0x"] * (1 - 1e-9)
