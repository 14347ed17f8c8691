"""Who is best and what is a tie, against SciPy's paired test and naive loops."""

import numpy as np
import pytest
from scipy import stats

from slimfl.studies.drawings import Point, pareto_front
from slimfl.studies.standing import Standing, gap_words, podium


def standings(**methods: list[float]) -> list[Standing]:
    return [Standing(name, dict(enumerate(values))) for name, values in methods.items()]


@pytest.mark.parametrize("seed", range(20))
def test_a_tie_is_what_the_paired_t_test_cannot_tell_apart(seed: int) -> None:
    random = np.random.default_rng(seed)
    first = 70 + random.normal(size=4)
    second = first - random.normal(0.8, 1.0, size=4)
    result = podium(standings(a=first.tolist(), b=second.tolist()))
    assert result is not None
    better, worse = (first, second) if first.mean() > second.mean() else (second, first)
    test = stats.ttest_rel(better, worse)
    assert result.is_tie == (test.pvalue >= 0.05)
    assert result.best.mean == pytest.approx(better.mean())
    interval = test.confidence_interval(0.95)
    assert result.lead is not None
    assert result.lead.half_width is not None
    assert result.lead.mean - result.lead.half_width == pytest.approx(interval.low)


def test_with_one_seed_everybody_is_tied() -> None:
    result = podium(standings(a=[80.0], b=[50.0]))
    assert result is not None
    assert result.is_tie
    assert result.wins_or_ties("b")
    assert result.best.method == "a"
    assert gap_words(result.lead) == "+30.0"


def test_only_those_that_cannot_be_told_apart_are_tied() -> None:
    result = podium(standings(a=[80, 81, 82], b=[79.9, 81.2, 81.8], c=[60, 61, 62]))
    assert result is not None
    assert result.wins_or_ties("a")
    assert result.wins_or_ties("b")
    assert not result.wins_or_ties("c")
    assert result.runner_up is not None
    assert result.runner_up.method == "b"


def test_seeds_that_only_one_has_do_not_count() -> None:
    a, b = Standing("a", {0: 70.0, 1: 72.0, 2: 99.0}), Standing("b", {0: 69.0, 1: 71.0})
    result = podium([a, b])
    assert result is not None
    assert result.lead is not None
    assert result.lead.mean == pytest.approx(1.0)
    assert result.lead.seeds == 2


def test_nobody_measured_is_nobody() -> None:
    assert podium([]) is None
    assert podium([Standing("a", {})]) is None


@pytest.mark.parametrize("seed", range(10))
def test_the_pareto_front_is_what_nobody_beats_in_both(seed: int) -> None:
    random = np.random.default_rng(seed)
    points = [Point(str(i), *random.integers(0, 6, 2).tolist(), 0.0) for i in range(12)]
    front = {(p.cost, p.accuracy) for p in pareto_front(points)}

    def beaten(p: Point) -> bool:
        return any(
            o.cost <= p.cost
            and o.accuracy >= p.accuracy
            and (o.cost, o.accuracy) != (p.cost, p.accuracy)
            for o in points
        )

    assert front == {(p.cost, p.accuracy) for p in points if not beaten(p)}
