"""Who has the highest mean and who is not told from it, against SciPy's paired test and loops."""

import numpy as np
import pytest
from scipy import stats

from lab.studies.drawings import Point, pareto_front
from lab.studies.standing import Standing, bound, gap_words, podium


def standings(**methods: list[float]) -> list[Standing]:
    return [Standing(name, dict(enumerate(values))) for name, values in methods.items()]


@pytest.mark.parametrize("seed", range(20))
def test_told_apart_is_what_the_paired_t_test_tells_apart(seed: int) -> None:
    random = np.random.default_rng(seed)
    first = 70 + random.normal(size=4)
    second = first - random.normal(0.8, 1.0, size=4)
    result = podium(standings(a=first.tolist(), b=second.tolist()))
    assert result is not None
    better, worse = (first, second) if first.mean() > second.mean() else (second, first)
    test = stats.ttest_rel(better, worse)
    assert result.told_apart == (test.pvalue < 0.05)
    assert result.best.mean == pytest.approx(better.mean())
    interval = test.confidence_interval(0.95)
    assert result.lead is not None
    assert result.lead.half_width is not None
    assert result.lead.mean - result.lead.half_width == pytest.approx(interval.low)
    assert bound(result.lead) == pytest.approx(max(abs(interval.low), abs(interval.high)))


def test_with_one_seed_nobody_is_told_apart() -> None:
    result = podium(standings(a=[80.0], b=[50.0]))
    assert result is not None
    assert not result.told_apart
    assert [each.method for each, _ in result.not_told_apart] == ["b"]
    assert result.words == "not told apart from it: b (no interval)"
    assert result.best.method == "a"
    assert gap_words(result.lead) == "+30.0"


def test_whoever_is_not_told_apart_is_named_with_a_bound() -> None:
    result = podium(standings(a=[80, 81, 82], b=[79.9, 81.2, 81.8], c=[60, 61, 62]))
    assert result is not None
    interval = stats.ttest_rel([80, 81, 82], [79.9, 81.2, 81.8]).confidence_interval(0.95)
    limit = max(abs(interval.low), abs(interval.high))
    printed = float(result.words.partition("< ")[2].removesuffix(" points)"))
    assert limit <= printed < limit + 0.1
    assert result.words.startswith("not told apart from it: b (|difference| < ")
    assert "c" not in result.words.partition(":")[2].replace("difference", "")
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
