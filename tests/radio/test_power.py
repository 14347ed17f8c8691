"""The power split that minimises D = sum 1/p_i."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from slimfl.errors import RequestError
from slimfl.radio import Superposition, optimal_split, optimal_split_numeric

fixture_is_a_function = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def needed_gains(rates, split, c_over_p):
    """Equation (5) message by message; infinite where the split cannot be decoded."""
    found, worst = [], 0.0
    for i, rate in enumerate(rates):
        target = 2**rate - 1
        margin = split[i] / target - sum(split[i + 1 :])
        worst = max(worst, c_over_p / margin) if margin > 0 else math.inf
        found.append(worst)
    return found


def log_d(rates, split, c_over_p):
    """log D = log sum exp(thresholds), without overflow."""
    gains = needed_gains(rates, split, c_over_p)
    top = max(gains)
    return top + math.log(sum(math.exp(gain - top) for gain in gains)) if top < math.inf else top


def d(rates, split, c_over_p):
    return math.exp(min(log_d(rates, split, c_over_p), 700))


# proposition 1


@pytest.mark.parametrize("target", [0.3, 0.667, 1.0, 1.8284, 3.0])
def test_the_closed_form_is_the_corrected_proposition_1_and_not_the_printed_one(target):
    rate = math.log2(1 + target)
    first, second = optimal_split([rate, rate])
    s = math.sqrt(1 + target)
    assert first == pytest.approx((target + s) / (1 + target + s))
    assert first == pytest.approx(1 - 1 / (s * (s + 1)))
    assert first + second == pytest.approx(1)
    printed = (target + s - 1) / target
    assert printed > 1  # E1: no share of the power
    assert abs(first - printed) > 0.1


@pytest.mark.parametrize(("rate", "best"), [(1.5, 0.778), (0.7375, 0.662)])
def test_the_best_split_of_the_notes(rate, best):
    assert optimal_split([rate, rate])[0] == pytest.approx(best, abs=0.0005)


@pytest.mark.parametrize("target", [0.3, 0.667, 1.8284, 3.0])
def test_the_closed_form_is_the_minimum_of_the_papers_own_d(target):
    """D of proposition 1's proof, written as the paper writes it, for a small c / P."""
    c = 1e-4

    def papers_d(lam):
        return math.exp(c / (lam / target - (1 - lam))) + math.exp(c / ((1 - lam) / target))

    lowest = target / (1 + target)
    found = minimize_scalar(
        papers_d, bounds=(lowest + 1e-6, 1 - 1e-6), method="bounded", options={"xatol": 1e-9}
    )
    rate = math.log2(1 + target)
    assert optimal_split([rate, rate])[0] == pytest.approx(found.x, abs=1e-3)


def first_order(rates, split):
    """(D - S) P / c for vanishing noise: the sum of the needed gains at c / P = 1."""
    return sum(needed_gains(rates, split, 1.0))


def scipys_first_order(from_margins, rates):
    """The least `first_order` that L-BFGS-B finds among needed gains that do not decrease.

    Message i needs the gain m_i with the margin u'_i / m_i; an earlier message that needs more than
    a later one only wastes power, so nothing is lost by m_1 <= m_2 <= ... In log m the logarithm of
    the objective is convex, and the increments of log m are bounded by 0.
    """
    targets = 2 ** np.array(rates) - 1

    def split_of(increments):
        gains = np.exp(np.cumsum([0.0, *increments]))
        return from_margins(rates, (targets / gains).tolist())

    found = minimize(
        lambda x: math.log(first_order(rates, split_of(x))),
        np.full(len(rates) - 1, 0.5),
        method="L-BFGS-B",
        bounds=[(0, None)] * (len(rates) - 1),
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 2000},
    )
    return first_order(rates, split_of(found.x))


@settings(fixture_is_a_function, max_examples=150)
@given(rates=st.lists(st.floats(0.1, 2.5), min_size=2, max_size=5))
def test_the_closed_form_is_the_first_order_optimum_for_rates_in_any_order(from_margins, rates):
    assert first_order(rates, optimal_split(rates)) == pytest.approx(
        scipys_first_order(from_margins, rates), rel=1e-6
    )


def test_thresholds_out_of_order_are_pooled():
    """Rates 2.0 and 0.2: without pooling, D - 2 was a fifth above what is possible."""
    rates, c = (2.0, 0.2), 1e-6
    closed, numeric = optimal_split(rates), optimal_split_numeric(rates, c)
    assert d(rates, closed, c) - 2 == pytest.approx(d(rates, numeric, c) - 2, rel=1e-4)
    np.testing.assert_allclose(closed, numeric, rtol=1e-4)
    # one threshold for both messages is the one message that both could have been
    assert needed_gains(rates, closed, 1.0) == pytest.approx([2**2.2 - 1] * 2)


def test_margins_of_the_closed_form_follow_the_notes():
    """a_i is proportional to sqrt(u'_i) / prod_{j<i} sqrt(1 + u'_j)."""
    rates = (0.4, 1.7, 0.9, 1.2)
    targets = [2**rate - 1 for rate in rates]
    split = optimal_split(rates)
    found = [split[i] - targets[i] * sum(split[i + 1 :]) for i in range(4)]
    expected = [
        math.sqrt(targets[i]) / math.prod(math.sqrt(1 + target) for target in targets[:i])
        for i in range(4)
    ]
    np.testing.assert_allclose(np.array(found) / found[0], np.array(expected) / expected[0])


# the numeric optimum


def all_noise(rates):
    """sum k_i of the module's docstring, computed as 2^(sum of rates) - 1."""
    return 2 ** sum(rates) - 1


@settings(fixture_is_a_function, max_examples=120)
@given(
    data=st.data(),
    rates=st.lists(st.floats(0.1, 3), min_size=1, max_size=4),
    level=st.floats(1e-5, 200),
)
def test_the_numeric_optimum_is_not_worse_than_any_feasible_split(from_margins, data, rates, level):
    """From little noise to almost hopeless noise, equal and unequal rates."""
    c = level / all_noise(rates)
    best = optimal_split_numeric(rates, c)
    assert sum(best) == pytest.approx(1)
    least = log_d(rates, best, c)
    assert least < math.inf
    for _ in range(15):
        margins = data.draw(
            st.lists(st.floats(1e-3, 10), min_size=len(rates), max_size=len(rates)), "margins"
        )
        other = from_margins(rates, margins)
        assert least <= log_d(rates, other, c) + 1e-9
    assert least <= log_d(rates, optimal_split(rates), c) + 1e-9


@pytest.mark.parametrize("rates", [(1.5, 1.5), (2.0, 0.2), (1.0, 1.5, 0.3), (3.0, 0.1, 0.1, 2.0)])
@pytest.mark.parametrize("c", [1e-4, 0.05, 0.5, 3.0])
def test_the_numeric_optimum_is_a_stationary_point(rates, c):
    """Moving a little power from any message to any other does not help."""
    best = np.array(optimal_split_numeric(rates, c))
    least = log_d(rates, best, c)
    for step in (1e-3, 1e-5):
        for giver in range(len(rates)):
            for taker in range(len(rates)):
                moved = best.copy()
                moved[giver] -= step
                moved[taker] += step
                if (moved > 0).all():
                    assert log_d(rates, moved, c) >= least - 1e-9


@pytest.mark.parametrize("c", [100.0, 1e4, 1e9, 1e-30])
def test_a_hopeless_or_perfect_channel_gives_a_split_or_a_request_error(c):
    """A sweep over the noise must not end in a traceback of the root finder."""
    try:
        split = optimal_split_numeric((1.5, 1.5), c)
    except RequestError:
        return
    Superposition((1.5, 1.5), split)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(0.05, 6), min_size=1, max_size=6))
def test_the_closed_form_can_always_be_decoded(rates):
    split = optimal_split(rates)
    assert all(share > 0 for share in split)
    assert sum(split) == pytest.approx(1)
    assert needed_gains(rates, split, 0.01)[-1] < math.inf
    Superposition(tuple(rates), split)


def test_a_single_message_gets_everything():
    assert optimal_split([1.5]) == (1.0,)
    assert optimal_split_numeric([1.5], 0.05) == pytest.approx((1.0,))
