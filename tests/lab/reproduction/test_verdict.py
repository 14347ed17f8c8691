"""The rule of verdicts, case by case, against what a reader would conclude by hand."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.reproduction.cells.scale import SCALES
from lab.reproduction.judging.reasons import reason
from lab.reproduction.judging.verdict import Claim, Comparison, Verdict, worst


def claim(*pairs, order=()):
    """A claim of (paper, paper's deviation, ours, our deviation) quantities over four seeds."""
    comparisons = tuple(
        Comparison(f"q{i}", ours, ours_sd, 4, paper, paper_sd)
        for i, (paper, paper_sd, ours, ours_sd) in enumerate(pairs)
    )
    return Claim("text", "source", comparisons, order)


@pytest.mark.parametrize(
    ("pairs", "verdict"),
    [
        ([(80, 2, 83.9, 0), (60, 2, 56.1, 0)], Verdict.AGREES),  # both within 2 x 2
        ([(80, 2, 84.1, 0), (60, 2, 60, 0)], Verdict.ORDER),  # one outside, order kept
        ([(80, 2, 50, 0), (60, 2, 60, 0)], Verdict.DIFFERS),  # reversed
        ([(80, 2, 50, 6), (60, 2, 47.1, 0)], Verdict.DIFFERS),  # ahead by less than the error 3
        ([(80, 2, 50, 6), (60, 2, 46.9, 0)], Verdict.ORDER),  # ahead by more
        ([(80, 2, 50, 0), (81, 2, 40, 0)], Verdict.DIFFERS),  # the paper tells no pair apart
        ([(80, 0, 80.5, 0), (60, 0, 60, 0)], Verdict.AGREES),  # half a unit of the last digit
        ([(80, 0, 80.6, 0), (60, 0, 60, 0)], Verdict.ORDER),
        ([(80, 2, None, 0), (60, 2, 60, 0)], Verdict.NOT_RUN),
        ([(80, 2, math.inf, 0), (60, 2, math.inf, 0)], Verdict.UNDECIDED),
        ([(80, 2, math.inf, 0), (60, 2, 10, 0)], Verdict.ORDER),  # never reached is more than 10
        ([(60, 2, math.inf, 0), (80, 2, 10, 0)], Verdict.DIFFERS),
    ],
)
def test_numbers(pairs, verdict):
    assert claim(*pairs).verdict is verdict


@pytest.mark.parametrize(
    ("slim", "vanilla", "verdict"),
    [
        ([10, 11, 12], [20, 21, math.inf], Verdict.ORDER),  # more costly with every seed
        ([10, 11, 12], [5, 6, math.inf], Verdict.DIFFERS),  # cheaper where it got there
        ([10, 11, math.inf], [20, 21, math.inf], Verdict.UNDECIDED),
        ([10, 11, math.inf], [20, 21, 22], Verdict.DIFFERS),
    ],
)
def test_where_some_seeds_never_got_there_the_order_must_hold_with_every_seed(
    slim, vanilla, verdict
):
    paper = {"SlimFL": 70.0, "Vanilla FL": 158.0}
    costs = tuple(
        Comparison(
            name,
            math.inf if math.inf in values else sum(values) / 3,
            0.0,
            3,
            paper[name],
            by_seed=dict(enumerate(values)),
        )
        for name, values in (("SlimFL", slim), ("Vanilla FL", vanilla))
    )
    assert Claim("cost", "table VII", costs).verdict is verdict


@pytest.mark.parametrize(
    ("ours", "deviation", "verdict"),
    [
        ((51, 50), 0, Verdict.AGREES),
        ((50, 50), 0, Verdict.DIFFERS),  # a tie shows no order
        ((49, 50), 0, Verdict.DIFFERS),
        ((51, 50), 2, Verdict.DIFFERS),  # within sqrt(1 + 1) of a tie
        ((51.5, 50), 2, Verdict.AGREES),
    ],
)
def test_an_order_alone(ours, deviation, verdict):
    pairs = [(None, 0, value, deviation) for value in ours]
    assert claim(*pairs, order=((0, 1),)).verdict is verdict


@given(
    st.lists(st.floats(0, 100), min_size=2, max_size=5),
    st.lists(st.floats(0, 10), min_size=5, max_size=5),
)
def test_the_paper_agrees_with_itself(values, deviations):
    pairs = [(v, d, v, d) for v, d in zip(values, deviations, strict=False)]
    assert claim(*pairs).verdict is Verdict.AGREES


@given(st.floats(20, 100), st.floats(0.1, 5), st.floats(0.1, 19))
def test_a_common_shift_keeps_the_order(high, gap_in_deviations, shift):
    """Numbers that are all off by the same amount keep every order that the paper tells apart."""
    low = high - 3 * (1 + gap_in_deviations)
    verdict = claim((high, 1, high - shift, 0), (low, 1, low - shift, 0)).verdict
    assert verdict is (Verdict.AGREES if shift <= 2 else Verdict.ORDER)


def test_nothing_is_concluded_from_unfinished_runs():
    done, open_ = (Comparison(name, 51.0, 0.0, 4, 51.0, finished=name == "a") for name in "ab")
    assert Claim("text", "source", (done, open_)).verdict is Verdict.UNFINISHED
    assert Claim("text", "source", (done,)).verdict is Verdict.AGREES
    assert Claim("text", "source", (open_, Comparison("c", None))).verdict is Verdict.NOT_RUN


def test_what_comes_out_alike_without_support_is_undecided():
    doubtful = replace(claim((80, 2, 81, 0)), doubt="the best of many")
    assert claim((80, 2, 81, 0)).verdict is Verdict.AGREES
    assert doubtful.verdict is Verdict.UNDECIDED
    assert reason(doubtful, SCALES["standard"]) == "the best of many"
    assert replace(claim((80, 2, 90, 0)), doubt="the best of many").verdict is Verdict.DIFFERS


def test_an_exhibit_has_the_worst_of_what_was_judged():
    agrees, order, differs = Verdict.AGREES, Verdict.ORDER, Verdict.DIFFERS
    assert worst([agrees, order]) is order
    assert worst([order, differs, agrees]) is differs
    assert worst([agrees, Verdict.NOT_RUN, Verdict.UNDECIDED, Verdict.UNFINISHED]) is agrees
    assert worst([Verdict.UNDECIDED]) is Verdict.UNDECIDED
    assert worst([]) is Verdict.NONE
