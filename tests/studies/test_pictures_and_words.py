"""What studies draw and say, against plain loops over made-up runs."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from slimfl.reproduction.judging.paired import difference
from slimfl.results import RunRecord
from slimfl.studies import local_work, split
from slimfl.studies.rival_runs import DEVICES
from slimfl.studies.scale import SCALES


def record(seed: int, delivered: Any) -> RunRecord:
    lines = [SimpleNamespace(delivered=row) for row in delivered]
    return cast(RunRecord, SimpleNamespace(experiment=SimpleNamespace(seed=seed), lines=lines))


def test_deliveries_are_compared_seed_by_seed_in_windows_of_rounds() -> None:
    random = np.random.default_rng(2)
    mine, base = (random.integers(0, DEVICES, (3, 25, 2)) for _ in range(2))
    line = split._over_time(
        "some split",
        [record(seed, mine[seed]) for seed in (2, 0, 1)],
        [record(seed, base[seed]) for seed in range(3)],
    )
    assert list(line.x) == [10, 20, 25]
    for number, (begin, end) in enumerate([(0, 10), (10, 20), (20, 25)]):
        gaps = []
        for seed in range(3):
            more = sum(mine[seed, r].sum() - base[seed, r].sum() for r in range(begin, end))
            gaps.append(more / DEVICES / (end - begin))
        assert line.mean[number] == pytest.approx(np.mean(gaps))
        assert line.deviation[number] == pytest.approx(np.std(gaps, ddof=1))


def test_a_split_is_named_only_where_its_interval_leaves_out_zero() -> None:
    clear = difference("a", "fixed", {0: 70, 1: 71, 2: 72}, {0: 60, 1: 61.1, 2: 62}, "points")
    vague = difference("b", "fixed", {0: 70, 1: 75, 2: 65}, {0: 69, 1: 70, 2: 68}, "points")
    assert clear is not None
    assert vague is not None
    told = split._accuracy_words("at rest", [clear, vague])
    assert "a +10.0" in told
    assert "b " not in told
    assert "no split changes" in split._accuracy_words("at rest", [vague])
    assert split._accuracy_words("at rest", []) == ""


def test_steps_that_cannot_be_told_apart_are_tied() -> None:
    by_steps = {"25": {0: 60.0, 1: 61.0}, "100": {0: 70.0, 1: 72.0}, "400": {0: 69.0, 1: 72.5}}
    words = local_work._best_words(SCALES["standard"], "SlimFL at 1.0x", by_steps)
    assert "best with 100 steps" in words
    assert "tied with 400," in words  # 25 steps are 10 and 11 points behind: 10.5 ± 6.4
    assert "5,000 local steps in all" in words
