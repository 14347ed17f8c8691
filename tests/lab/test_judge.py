"""Verdicts follow from intervals, the paper's size and its own noise; never from one seed."""

import math

import pytest
from scipy import stats

from lab.judge import Claim, Verdict, by_reading, counted, judged
from slimfl.results.statistics import paired


def claim(values, effect=None, name="c", **more):
    contrast = paired(dict(enumerate(values)), dict.fromkeys(range(len(values)), 0.0))
    return Claim(name, "", "", contrast=contrast, effect=effect, seeds=len(values), **more)


def verdict(values, effect=None, **more):
    (found,) = judged([claim(values, effect, **more)])
    return found.verdict


STEADY = [2.9, 3.0, 3.1, 2.95, 3.05]


@pytest.mark.parametrize(
    ("values", "effect", "expected"),
    [
        (STEADY, 3.0, Verdict.REPRODUCED),
        (STEADY, 2.0, Verdict.REPRODUCED),  # the paper's size or more
        (STEADY, 10.0, Verdict.SMALLER),
        (STEADY, None, Verdict.REPRODUCED),
        (STEADY, -3.0, Verdict.NOT),  # the opposite
        ([-0.1, 0.0, 0.1, 0.05, -0.05], 3.0, Verdict.NOT),
        ([-4.0, 5.0, 1.0, -2.0, 3.0], 3.0, Verdict.INCONCLUSIVE),
        ([3.0], 3.0, Verdict.NONE),
    ],
)
def test_the_verdict_is_read_from_the_interval(values, effect, expected):
    assert verdict(values, effect) is expected


def test_the_papers_number_has_the_noise_of_a_single_run():
    zero = [-0.1, 0.0, 0.1, 0.05, -0.05]
    assert verdict(zero, 3.0, effect_deviation=0.1) is Verdict.NOT
    assert verdict(zero, 3.0, effect_deviation=2.0) is Verdict.INCONCLUSIVE
    t = stats.t.ppf(0.975, 4)
    own = stats.tstd(zero) / math.sqrt(5)
    edge = math.sqrt((3.0 / t) ** 2 - own**2)  # t times both errors is then the distance
    assert verdict(zero, 3.0, effect_deviation=0.99 * edge) is Verdict.NOT
    assert verdict(zero, 3.0, effect_deviation=1.01 * edge) is Verdict.INCONCLUSIVE


def test_a_sign_without_a_size_is_judged_by_its_side():
    assert verdict([-each for each in STEADY], sign=-1) is Verdict.REPRODUCED
    assert verdict(STEADY, sign=-1) is Verdict.NOT


def test_holm_is_applied_within_an_exhibit():
    lone = [0.2, 1.8, 0.9, 1.6, 0.4]
    p = stats.ttest_1samp(lone, 0).pvalue
    assert 0.01 < p < 0.05
    assert verdict(lone) is Verdict.REPRODUCED
    noise = [claim([1.0, -1.1, 0.3, -0.2, 0.1], name=f"n{i}") for i in range(9)]
    found = judged([claim(lone), *noise])[0]
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.adjusted_p == pytest.approx(min(1, 10 * p))


def test_contrasts_of_one_family_share_their_deviation_and_single_seeds_stay_out():
    first, second = [1.0, 2.0, 3.0], [5.0, 7.0, 9.0]
    one, two, lone = judged(
        [claim(first, family="a"), claim(second, family="a"), claim([4.0], family="a")]
    )
    pooled = math.sqrt((2 * 1.0 + 2 * 4.0) / 4)
    half = stats.t.ppf(0.975, 4) * pooled / math.sqrt(3)
    for each, mean in ((one, 2.0), (two, 7.0)):
        assert each.contrast.interval() == pytest.approx((mean - half, mean + half))
    assert lone.verdict is Verdict.NONE
    assert lone.contrast.interval() is None


def test_fewer_than_five_seeds_are_preliminary():
    few, enough = judged([claim([3.0, 3.1, 3.05])])[0], judged([claim(STEADY)])[0]
    assert few.is_preliminary
    assert not enough.is_preliminary


def test_readings_that_disagree_make_a_claim_depend_on_them():
    yes, no = judged([claim(STEADY)])[0], judged([claim(STEADY, sign=-1)])[0]
    assert by_reading("n", "t", "s", {"a": yes, "b": no}).verdict is Verdict.READING
    assert by_reading("n", "t", "s", {"a": yes, "b": yes}).verdict is Verdict.REPRODUCED
    (lone,) = judged([claim([1.0])])
    assert by_reading("n", "t", "s", {"a": yes, "b": lone}).verdict is Verdict.NONE


def test_verdicts_are_counted_and_not_summed_up_as_the_worst():
    assert counted(["not reproduced", "reproduced", "reproduced"]) == (
        "reproduced 2, not reproduced 1"
    )
