"""Thresholds against a receiver that computes every ratio in watts."""

import math
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.radio import (
    Superposition,
    noise_to_power,
    optimal_split,
    outage_link,
    single,
    sinr_target,
)

fixture_is_a_function = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
rates_strategy = st.lists(st.floats(0.1, 3), min_size=1, max_size=5)


@pytest.mark.parametrize(("rate", "target"), [(1.5, 1.8284), (0.7375, 0.6673), (3, 7), (1, 1)])
def test_the_target_is_two_to_the_rate_minus_one(rate, target):
    assert sinr_target(rate) == pytest.approx(target, rel=1e-4)


def test_tiny_rates_do_not_vanish():
    assert sinr_target(1e-18) == pytest.approx(1e-18 * math.log(2), rel=1e-12)


@settings(fixture_is_a_function, max_examples=200)
@given(
    data=st.data(),
    rates=rates_strategy,
    noise_dbm=st.floats(-70, -20),
    distance_m=st.floats(10, 500),
    exponent=st.floats(2, 4),
    power_dbm=st.floats(0, 40),
)
def test_messages_decoded_are_those_of_the_literal_receiver(
    decode, from_margins, data, rates, noise_dbm, distance_m, exponent, power_dbm
):
    margins = data.draw(
        st.lists(st.floats(0.01, 10), min_size=len(rates), max_size=len(rates)), "margins"
    )
    split = from_margins(rates, margins)
    section = RadioSection(
        noise_dbm=noise_dbm,
        distance_m=distance_m,
        path_loss_exponent=exponent,
        power_dbm=power_dbm,
    )
    link, coding = outage_link(section), Superposition(tuple(rates), split)
    # gains from far too small to far too large, around the largest threshold
    top = coding.thresholds(noise_to_power(section))[-1]
    gains = top * np.geomspace(1e-4, 1e2, 23)
    decoded = link.decoded(coding, gains)
    compared = 0
    for gain, count in zip(gains, decoded, strict=True):
        expected, closest = decode(
            float(gain), rates, split,
            noise_dbm=noise_dbm, power_dbm=power_dbm, distance_m=distance_m, exponent=exponent,
        )  # fmt: skip
        if closest > 1e-7:
            assert count == expected
            compared += 1
    assert compared >= 20
    assert decoded[-1] == len(rates)


@settings(fixture_is_a_function, max_examples=200)
@given(data=st.data(), rates=rates_strategy)
def test_a_split_is_feasible_exactly_when_a_noiseless_receiver_decodes_it(decode, data, rates):
    parts = data.draw(
        st.lists(st.floats(0.01, 1), min_size=len(rates), max_size=len(rates)), "parts"
    )
    sharpness = data.draw(st.sampled_from([1, 2, 4]))
    if data.draw(st.booleans()):
        parts = sorted(parts, reverse=True)
    parts = [part**sharpness for part in parts]
    split = tuple(part / sum(parts) for part in parts)
    count, closest = decode(1.0, rates, split, noise_dbm=None)
    assume(closest > 1e-7)
    if count == len(rates):
        coding = Superposition(tuple(rates), split)
        assert np.isfinite(coding.thresholds(0.01)).all()
    else:
        with pytest.raises(RequestError, match=f"segment {count + 1}"):
            Superposition(tuple(rates), split)


@settings(fixture_is_a_function, max_examples=50)
@given(data=st.data(), rate=st.floats(0.1, 3), count=st.integers(1, 5))
def test_equal_rates_with_any_feasible_split_have_the_papers_thresholds(
    from_margins, data, rate, count
):
    """Equation (5): g >= c / (P_i / u' - interference), and all before."""
    margins = data.draw(st.lists(st.floats(0.01, 10), min_size=count, max_size=count))
    split = from_margins([rate] * count, margins)
    target, c_over_p = 2**rate - 1, 0.03
    needed = [c_over_p / (split[i] / target - sum(split[i + 1 :])) for i in range(count)]
    expected = [max(needed[: i + 1]) for i in range(count)]
    found = Superposition((rate,) * count, split).thresholds(c_over_p)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_thresholds_that_are_not_nested_become_a_running_maximum(decode):
    """A slow second message needs less gain than the first, but has to wait for it."""
    rates, split = (2.0, 0.1), (0.8, 0.2)
    targets = [3.0, 2**0.1 - 1]
    alone = [0.05 * targets[0] / (0.8 - 3 * 0.2), 0.05 * targets[1] / 0.2]
    assert alone[1] < alone[0]
    found = Superposition(rates, split).thresholds(0.05)
    assert found == pytest.approx([alone[0], alone[0]])
    noise_dbm = 10 * math.log10(0.05 / 100**2.5) + 23
    between = (alone[0] + alone[1]) / 2
    assert decode(between, rates, split, noise_dbm=noise_dbm)[0] == 0
    assert decode(alone[0] * 1.001, rates, split, noise_dbm=noise_dbm)[0] == 2


@settings(fixture_is_a_function, max_examples=30)
@given(data=st.data(), rates=rates_strategy)
def test_thresholds_are_proportional_to_the_noise_and_never_fall(from_margins, data, rates):
    margins = data.draw(
        st.lists(st.floats(0.01, 10), min_size=len(rates), max_size=len(rates)), "margins"
    )
    coding = Superposition(tuple(rates), from_margins(rates, margins))
    base = coding.thresholds(0.01)
    assert (np.diff(base) >= 0).all()
    assert (base > 0).all()
    np.testing.assert_allclose(coding.thresholds(0.07), 7 * base)


def test_a_single_message_has_all_the_power():
    assert single(1.5).thresholds(0.05) == pytest.approx([0.05 * (2**1.5 - 1)])


# errors


def proposed_split(message):
    """The numbers after the sentence's first half, as a person would paste them."""
    tail = message.rpartition(";")[2]
    return tuple(float(number) for number in re.findall(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?", tail))


@pytest.mark.parametrize(
    ("rates", "split", "segment"),
    [
        ((1.5, 1.5), (0.5, 0.5), 1),
        ((1.5, 1.5, 1.5), (0.9, 0.05, 0.05), 2),
        ((0.3, 2.0, 0.7), (1 / 3, 1 / 3, 1 / 3), 2),
        ((1.0, 1.0, 1.0, 1.0), (0.8, 0.16, 0.02, 0.02), 3),
    ],
    ids=str,
)
def test_an_infeasible_split_is_refused_with_its_segment_and_a_split_that_works(
    rates, split, segment
):
    with pytest.raises(RequestError) as caught:
        Superposition(rates, split)
    message = str(caught.value)
    assert f"segment {segment} " in message
    assert "\n" not in message
    proposal = proposed_split(message)
    assert len(proposal) == len(rates)
    assert Superposition(rates, proposal).split == proposal


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(0.5, 4), min_size=2, max_size=5))
def test_the_proposed_split_works_as_printed_for_any_rates(rates):
    backwards = tuple(reversed(optimal_split(rates)))
    try:
        Superposition(tuple(rates), backwards)
    except RequestError as error:
        Superposition(tuple(rates), proposed_split(str(error)))


@pytest.mark.parametrize(
    ("rates", "split", "words"),
    [
        ((1.5, 1.5), (0.8,), "1 share"),
        ((1.5, 1.5), (0.8, 0.3), "sum to 1"),
        ((1.5, 1.5), (1.2, -0.2), "positive"),
    ],
)
def test_a_split_that_is_none_is_refused(rates, split, words):
    with pytest.raises(RequestError, match=words):
        Superposition(rates, split)
