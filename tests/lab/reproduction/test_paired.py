"""Paired differences: against a textbook example, tables of Student's t, and how they are used."""

import math
from dataclasses import replace
from statistics import fmean, stdev

import pytest

from lab.reproduction.cells.scale import SCALES
from lab.reproduction.exhibits import RECIPES
from lab.reproduction.exhibits import table3_runs as grid
from lab.reproduction.judging.paired import difference, student_t
from lab.reproduction.judging.reasons import reason
from lab.reproduction.judging.verdict import Claim, Comparison, Verdict
from lab.reproduction.reproduce import as_markdown, verdict_table
from tests.lab.reproduction.test_exhibits import LONG, papers_runs, record


@pytest.mark.parametrize(("degrees", "printed"), [(1, 12.706), (2, 4.303), (9, 2.262), (30, 2.042)])
def test_students_t_is_that_of_the_tables(degrees, printed):
    assert student_t(degrees) == pytest.approx(printed, abs=5e-4)


def test_gossets_sleep():
    """Student's own example of 1908: hours of sleep gained by ten patients under two drugs."""
    first = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    second = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    got = difference("b", "a", dict(enumerate(first)), dict(enumerate(second)), "h").as_json()
    assert got["mean"] == pytest.approx(1.58)
    assert [got["low"], got["high"]] == pytest.approx([0.7001, 2.4599], abs=1e-4)
    assert got["seeds"] == 10


def test_only_seeds_that_both_have_count_and_one_gives_no_interval():
    assert difference("a", "b", {0: 1.0}, {1: 1.0}) is None
    got = difference("a", "b", {0: 3.0, 1: 9.0}, {0: 1.0, 2: 5.0}).as_json()
    assert (got["mean"], got["seeds"], got["low"], got["high"]) == (2.0, 1, None, None)
    assert difference("a", "b", {0: math.inf}, {0: 1.0}) is None


def test_a_common_shift_of_a_seed_leaves_the_difference_alone():
    """What pairing is for: seeds that are easy or hard for both methods."""
    hard = {0: 0.0, 1: -20.0, 2: 35.0}
    first, second = {s: 60 + v for s, v in hard.items()}, {s: 58 + v for s, v in hard.items()}
    got = difference("a", "b", first, second).as_json()
    assert got["low"] == pytest.approx(2.0)
    assert got["high"] == pytest.approx(2.0)


def test_table3_has_the_differences_of_its_runs_and_their_seeds():
    scale = replace(LONG, seeds=3)
    runs = papers_runs(grid.all_cells(scale))
    slim = grid.setting(scale, "poor", 0.1, "slimfl")
    for cell, wide in zip(slim, (60, 61, 65), strict=True):
        runs[cell] = record(cell, {("slimfl", "0.5x"): 50, ("slimfl", "1.0x"): wide})
    claim = RECIPES["table3"].show(scale, runs).claims[3]
    assert claim.source == "table III, poor, alpha = 0.1"
    assert claim.seeds == 3
    wide, narrow = claim.differences
    assert (wide.larger, wide.smaller) == ("SlimFL-1.0x", "Vanilla FL-1.0x")
    samples = [60 - 55, 61 - 55, 65 - 55]
    assert wide.mean == pytest.approx(fmean(samples))
    assert wide.half_width == pytest.approx(4.3027 * stdev(samples) / math.sqrt(3), rel=1e-4)
    assert (narrow.mean, narrow.half_width) == (pytest.approx(11), pytest.approx(0, abs=1e-9))


def test_every_claim_on_runs_has_its_seeds_in_every_exhibit():
    for name, seeds in (("table3", 2), ("table7", 2), ("fig7", 2)):
        cells = [c for c in RECIPES[name].cells(LONG) if c.experiment.radio.channel != "custom"]
        for claim in RECIPES[name].show(LONG, papers_runs(cells)).claims:
            assert claim.seeds == seeds, claim.text
            assert claim.differences, claim.text
    for name in ("table1", "table4", "table5", "table6", "fig4"):
        assert {claim.seeds for claim in RECIPES[name].show(LONG, {}).claims} == {None}


def test_verdicts_do_not_follow_the_intervals():
    """The rule stays: it goes by the standard error, which is smaller than the interval."""
    one, other = (
        Comparison("a", 61.0, 1.0, 3, unit="%", by_seed={0: 60.0, 1: 61.0, 2: 62.0}),
        Comparison("b", 60.0, 1.0, 3, unit="%", by_seed={0: 61.0, 1: 59.0, 2: 60.0}),
    )
    claim = Claim("a is ahead", "text", (one, other), order=((0, 1),))
    assert claim.verdict is Verdict.AGREES
    assert claim.differences[0].half_width > claim.differences[0].mean


def test_the_table_of_verdicts_names_seeds_and_differences():
    exhibit = RECIPES["table3"].show(LONG, papers_runs(grid.all_cells(LONG))).as_json()
    for claim in exhibit["claims"]:
        claim["reason"] = ""
    text = as_markdown(verdict_table([exhibit]))
    assert text.count("2 seeds |") == len(exhibit["claims"])
    assert "SlimFL-1.0x − Vanilla FL-1.0x: +10.0 points (95% interval" in text


def accuracies(ours, printed):
    return Claim(
        "two accuracies",
        "table III",
        tuple(
            Comparison(str(n), mine, 0.5, 3, theirs, 0.5, unit="%", by_seed={0: mine})
            for n, (mine, theirs) in enumerate(zip(ours, printed, strict=True))
        ),
    )


def test_length_is_a_reason_only_where_it_can_be():
    above, below = accuracies((70, 60), (55, 60)), accuracies((70, 50), (55, 60))
    same = accuracies((55, 60), (55, 60))
    assert reason(same, SCALES["small"]) == ""
    assert "quick look" in reason(above, SCALES["small"])
    assert reason(above, SCALES["standard"]).startswith("The length is not the reason")
    assert "fewer rounds may be the reason" in reason(below, SCALES["standard"])
    assert "unknown" in reason(below, SCALES["paper"])
    known = replace(above, explanation="Two steps per batch.")
    assert reason(known, SCALES["standard"]) == "Two steps per batch."
    assert "quick look" in reason(known, SCALES["small"])
    assert reason(replace(same, explanation="Two steps per batch."), SCALES["standard"]) == ""
    costs = tuple(
        Comparison(name, ours, 0.5, 3, theirs, unit="W", by_seed={0: ours})
        for name, ours, theirs in (("SlimFL", 10, 3), ("Vanilla FL-1.5x", math.inf, 25))
    )
    late = Claim("costs", "table VII", costs)
    assert reason(late, SCALES["standard"]) == (
        "Not every seed of Vanilla FL-1.5x converged in these rounds: more rounds may change this."
    )
    computed = RECIPES["fig4"].show(LONG, {}).claims[1]
    assert "erratum E1" in reason(computed, SCALES["small"])
