"""What studies draw and say, against plain loops over made-up runs."""

import re
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from lab.reproduction.judging.paired import difference
from lab.studies import local_work, regimes, rivals, split
from lab.studies.rival_runs import DEVICES, Entry, Result
from lab.studies.scale import SCALES
from lab.studies.standing import Standing, podium
from slimfl.results import RunRecord


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
    told = split._accuracy_words("at rest", [vague])
    assert "tell no split apart" in told
    assert "|difference| < 11.0 points" in told  # 1, 5, -3: 1 ± 9.94
    assert split._accuracy_words("at rest", []) == ""


def test_steps_that_are_not_told_apart_are_named_with_their_bound() -> None:
    by_steps = {"25": {0: 60.0, 1: 61.0}, "100": {0: 70.0, 1: 72.0}, "400": {0: 69.0, 1: 72.5}}
    words = local_work._best_words("SlimFL at 1.0x", by_steps)
    assert "highest mean with 100 steps" in words
    # 25 steps are 10 and 11 points behind: 10.5 ± 6.4; 400 steps 1.0 and -0.5: 0.25 ± 9.53
    assert words.endswith("not told apart from it: 400 (|difference| < 9.8 points).")


def a_regime(alpha: float, slim: list[float], rival: list[float], **changes: Any) -> regimes.Found:
    at_rounds = {
        width: podium(
            [
                Standing("slimfl", dict(enumerate(slim))),
                Standing(f"vanilla-{width}", dict(enumerate(rival))),
            ]
        )
        for width in regimes.WIDTHS
    }
    values = {
        "regime": regimes.Regime("poor", "same", alpha),
        "by_width": at_rounds,
        "by_energy": at_rounds,
        "best_model": at_rounds["1.0x"],
        "advised": "slimfl",
        "airtime_ms": dict.fromkeys(regimes.METHODS, 0.5),
        "sending_share": 0.01,
        "is_superposed": True,
        **changes,
    }
    return regimes.Found(**values)


CLOSE = ([70.0, 71.0, 72.0], [70.5, 70.0, 72.5])
BEHIND = ([70.0, 71.0, 72.0], [75.0, 76.1, 77.0])


def said(outcomes: list[regimes.Found], monkeypatch: pytest.MonkeyPatch) -> str:
    settings = {each.regime: each for each in outcomes}
    monkeypatch.setattr(regimes, "regimes", lambda: list(settings))
    monkeypatch.setattr(regimes, "found", lambda scale, regime, runs: settings[regime])
    answered = regimes.answer(SCALES["standard"], {})
    return "\n".join([*answered.sentences, *answered.tables[0].table.rows[0]])


def test_settings_without_a_second_segment_are_marked_and_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = said([a_regime(0.1, *BEHIND, is_superposed=False), a_regime(1, *CLOSE)], monkeypatch)
    assert "In 1 of them (marked *) SlimFL never sent segment 2" in words
    assert "At 1.0x, after equal rounds, in 1 settings" in words
    assert "Vanilla FL-1.0x in 0" in words  # the marked one is not counted
    assert "bit/s/Hz *" in words


def test_what_is_not_told_apart_is_bounded_and_never_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = said([a_regime(0.1, *CLOSE), a_regime(1, *BEHIND)], monkeypatch)
    # -0.5, 1, -0.5: 0 ± 2.16
    assert "Elsewhere the seeds cannot tell them apart: differences of up to 2.2 points" in words
    assert "Vanilla FL-1.0x in 1" in words
    assert not re.search(r"\bt(ie|ied|ies)\b", words)


def test_advice_stands_beside_what_constant_answers_get(monkeypatch: pytest.MonkeyPatch) -> None:
    words = said([a_regime(0.1, *BEHIND), a_regime(1, *BEHIND)], monkeypatch)
    assert "in 0 of 2 settings" in words
    assert "always Vanilla FL-1.0x 2" in words
    assert "do not show that the advice is of use" in words


@pytest.mark.parametrize(
    ("uploads", "is_one"), [({0: 5, 2: 4}, True), ({0: 5, 1: 1, 2: 4}, False), ({0: 9}, True)]
)
def test_segments_that_only_arrive_together_are_one_message(
    uploads: dict[int, int], is_one: bool
) -> None:
    def result(entry: Entry, airtime_ms: float) -> Result:
        return Result(entry, {}, {}, 50.0, uploads, airtime_ms, 1.0, 0.1, 1.0)

    turns = Entry("in turn", "slimfl", {"radio__multiplexing": "orthogonal-energy"})
    results = [result(turns, 1.2), result(Entry("SHeteroFL", "sheterofl", {}), 0.6)]
    sentences = rivals._in_turn("cell", results)
    assert len(sentences) == is_one
    if is_one:
        assert "2.0 times the airtime of SHeteroFL" in sentences[0]
    assert rivals._is_longer_message(results[0]) == is_one
