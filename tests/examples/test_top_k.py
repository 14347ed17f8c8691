"""A stage from outside the package sends fewer bits, on every engine."""

import math
from pathlib import Path

import numpy as np
import pytest

from slimfl.errors import RequestError
from slimfl.experiment import build
from slimfl.experiment.naming import trusting
from slimfl.round import Simulation

HOWTO = Path(__file__).parents[2] / "docs/howto"


@pytest.fixture(autouse=True)
def mylab(monkeypatch):
    monkeypatch.syspath_prepend(str(HOWTO))
    with trusting(["mylab"]):
        yield


def simulation(engine, *stages, **changes):
    tree = {
        "engine": engine, "threads": 1, "stages": list(stages),
        "radio": {"noise_dbm": -60.0, "rates": "equal"},
        "data": {"dataset": "synthetic", "train_samples": 200, "test_samples": 50},
        "training": {"steps": 2}, "federation": {"devices": 3},
    }  # fmt: skip
    return Simulation(build(tree | changes))


TOP_K = {"name": "mylab.top_k:TopK", "options": {"share": 0.05}}


@pytest.mark.parametrize("engine", ["native", "torch"])
def test_bits_airtime_and_energy_follow_from_what_is_sent(engine):
    plain, sparse = simulation(engine), simulation(engine, TOP_K)
    before = plain.step()
    model = sparse.global_model.copy()
    after = sparse.step()
    sizes = sparse.setting.segments.sizes.tolist()
    expected = [
        3 * max(1, round(0.05 * size)) * (32 + math.ceil(math.log2(size))) for size in sizes
    ]
    assert after.bits_sent == expected
    ratio = max(expected) / max(before.bits_sent)  # the longest message is on the air longest
    assert after.airtime_s == pytest.approx(ratio * before.airtime_s)
    assert after.energy_j == pytest.approx(ratio * before.energy_j)
    assert after.duration_s == pytest.approx(ratio * before.duration_s)
    moved = np.flatnonzero(sparse.global_model != model)
    assert 0 < len(moved) <= 3 * sum(max(1, round(0.05 * size)) for size in sizes)


@pytest.mark.parametrize("engine", ["native", "torch"])
def test_of_one_device_the_largest_changes_arrive_as_they_are(engine):
    sparse = simulation(engine, TOP_K, federation={"devices": 1})
    plan = sparse.plan()
    [update] = sparse.outcomes(plan)
    sparse.collect(plan, iter([update]))
    change = np.abs(update.parameters - plan.model)
    for where in sparse.setting.segments.positions:
        kept = max(1, round(0.05 * len(where)))
        bound = np.sort(change[where])[-kept]
        sent = where[change[where] > bound]
        left = where[change[where] < bound]
        np.testing.assert_array_equal(sparse.global_model[sent], update.parameters[sent])
        np.testing.assert_array_equal(sparse.global_model[left], plan.model[left])


def test_all_of_it_is_the_plain_run():
    whole = {"name": "mylab.top_k:TopK", "options": {"share": 1.0}}
    plain, all_sent = simulation("native"), simulation("native", whole)
    plain.step()
    all_sent.step()
    np.testing.assert_array_equal(plain.global_model, all_sent.global_model)


def test_a_wrong_stage_is_refused():
    for stage in (
        {"name": "top-k"},
        {"name": "mylab.stopping:StopAt"},
        {"name": "mylab.top_k:TopK", "options": {"part": 0.1}},
    ):
        with pytest.raises(RequestError):
            simulation("native", stage)
