"""What an answer refuses to compare, and the numbers that it reads from a run."""

from dataclasses import replace

import pytest

from lab.plan import Measure, NamedPlan, Plan, PlannedRun
from lab.planned import answer, measured
from lab.question import arrived_shares, spent
from slimfl.errors import RequestError
from tests.hand_made_runs import line

FULL = Measure(width="1.0x", score="late tests")


def run_with(make_run, method, seed, accuracy):
    return make_run(method, seed, {"0.5x": [a / 2 for a in accuracy], "1.0x": accuracy})


def test_scores_by_hand(make_run):
    record = run_with(make_run, "slimfl", 100, [0.1, 0.5, 0.6, 0.4])
    assert measured(record, FULL, 2) == pytest.approx(50.0)
    assert measured(record, Measure(width="1.0x", score="worst late test"), 2) == pytest.approx(40)
    jumps = Measure(width="1.0x", score="fluctuation")
    assert measured(record, jumps, 2) == pytest.approx(((10**2 + 20**2) / 2 / 2) ** 0.5)
    assert measured(record, Measure(width="0.25x", score="late tests"), 2) is None
    assert measured(record, Measure(width="1.0x", score="mean of the last models"), 2) is None


def test_budgets_and_shares_by_hand(make_run):
    record = run_with(make_run, "slimfl", 100, [0.1, 0.5])
    took = spent([record])
    assert took["airtime"] == pytest.approx(1.0)
    assert took["airtime per upload"] == pytest.approx(0.25)
    assert took["transmit energy"] == pytest.approx(0.5)
    assert arrived_shares([record]) == [1.0, 0.5]
    assert line(1, {})["delivered"] == [2, 1]


class FakeCell:
    """A finished run without a folder."""

    def __init__(self, record):
        self.kept, self.rounds = record, len(record.lines)

    def record(self, cache):
        return self.kept

    def folder(self, cache):
        return cache / f"run-{id(self)}"


def planned(monkeypatch, tmp_path, records, **changes):
    values = {
        "title": "t",
        "question": "q",
        "prediction": "p",
        "seeds": [100, 101],
        "late_from": 1,
        "test": "t",
        "stop": "s",
        "common": {},
        "arms": {"one": {}, "other": {}},
        "contrasts": [
            {"name": "c", "of": "one", "over": "other", "measure": FULL, "role": "primary"}
        ],
    }
    found = NamedPlan(tmp_path / "plan.toml", Plan.model_validate(values | changes))
    runs = [
        PlannedRun("", arm, record.experiment.seed, FakeCell(record))
        for arm, kept in records.items()
        for record in kept
    ]
    monkeypatch.setattr(NamedPlan, "runs", runs)
    return found


def arms(make_run):
    return {
        "one": [run_with(make_run, "slimfl", s, [0.5 + s / 1e4, 0.6]) for s in (100, 101)],
        "other": [run_with(make_run, "sheterofl", s, [0.4, 0.6]) for s in (100, 101)],
    }


def test_a_contrast_is_paired_by_seed_and_preliminary_with_two(make_run, monkeypatch, tmp_path):
    found = answer(planned(monkeypatch, tmp_path, arms(make_run)), tmp_path)
    [judged] = found.judged
    assert judged.outcome.by_seed == pytest.approx({100: 5.5, 101: 5.505})
    assert judged.outcome.preliminary
    assert not judged.decided
    assert len(found.outside) == 4  # no plan asked for them before they began


@pytest.mark.parametrize("quantity", ["airtime", "transmit energy"])
def test_budgets_that_differ_are_refused(make_run, monkeypatch, tmp_path, quantity):
    equal = {quantity: ["one", "other"]}
    records = arms(make_run)
    answer(planned(monkeypatch, tmp_path, records, equal=equal), tmp_path)
    key = {"airtime": "airtime_s", "transmit energy": "energy_j"}[quantity]
    records["other"] = [
        replace(r, lines=[x.model_copy(update={key: 0.3}) for x in r.lines])
        for r in records["other"]
    ]
    other = planned(monkeypatch, tmp_path, records, equal=equal)
    with pytest.raises(RequestError, match=quantity):
        answer(other, tmp_path)


def test_a_segment_that_never_arrives_is_refused(make_run, monkeypatch, tmp_path):
    records = arms(make_run)
    records["one"] = [
        replace(r, lines=[x.model_copy(update={"delivered": [2, 0]}) for x in r.lines])
        for r in records["one"]
    ]
    with pytest.raises(RequestError, match="segment 2"):
        answer(planned(monkeypatch, tmp_path, records), tmp_path)


def test_segments_that_arrive_only_together_are_refused(make_run, monkeypatch, tmp_path):
    records = arms(make_run)
    records["one"] = [
        replace(r, lines=[x.model_copy(update={"delivered": [1, 1]}) for x in r.lines])
        for r in records["one"]
    ]
    with pytest.raises(RequestError, match="one message"):
        answer(planned(monkeypatch, tmp_path, records), tmp_path)
