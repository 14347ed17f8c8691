"""The mean over all devices of a round, against a mean over written-out models."""

import numpy as np
import pytest

from slimfl.errors import RequestError
from slimfl.methods import RunningMean
from slimfl.nn import ULMobileNet, segments
from slimfl.round import Simulation
from tests import asking

TINY = {
    "data__dataset": "synthetic",
    "data__train_samples": 200,
    "data__test_samples": 50,
    "threads": 1,
    "training__steps": 2,
    "federation__devices": 6,
    "radio__noise_dbm": -38.0,
}


@pytest.mark.parametrize("absent", ["old", "zero"])
def test_a_mean_over_models_in_which_what_is_lost_was_filled_in(absent):
    cut = segments(ULMobileNet(), (0.5, 1.0))
    random = np.random.default_rng(7)
    size = sum(len(where) for where in cut.positions)
    last = random.normal(size=size).astype(np.float32)
    models = random.normal(size=(5, size)).astype(np.float32)
    delivered = [(0, 1), (0,), (), (0, 1), (0,)]
    mean = RunningMean(last, asked=5, absent=absent)
    filled = []
    for model, arrived in zip(models, delivered, strict=True):
        for segment in arrived:
            mean.add(model, cut.positions[segment])
        whole = last.copy() if absent == "old" else np.zeros_like(last)
        for segment in arrived:
            whole[cut.positions[segment]] = model[cut.positions[segment]]
        filled.append(whole.astype(np.float64))
    got = mean.result()
    np.testing.assert_allclose(got, np.mean(filled, axis=0), rtol=1e-6, atol=1e-7)


def test_what_nobody_sends_or_delivers_stays():
    cut = segments(ULMobileNet(), (0.5, 1.0))
    size = sum(len(where) for where in cut.positions)
    last, model = np.full(size, 3, np.float32), np.full(size, 5, np.float32)
    mean = RunningMean(last, asked=4, absent="zero")
    np.testing.assert_array_equal(mean.result(), last)
    mean.add(model, cut.positions[0])
    got = mean.result()
    assert (got[cut.positions[0]] == 1.25).all()
    assert (got[cut.positions[1]] == 3).all()


def models(**changes):
    simulation = Simulation(asking.load(**(TINY | changes))[0])
    lines = [simulation.step() for _ in range(3)]
    return simulation.global_model, lines


def test_the_key_changes_runs_in_which_something_is_lost_and_no_others():
    lossy, lines = models()
    assert any(0 < count < 6 for line in lines for count in line["delivered"])
    for absent in ("old", "zero"):
        assert not np.array_equal(models(federation__absent=absent)[0], lossy)
    clean, lines = models(radio__noise_dbm=-120.0)
    assert all(line["delivered"] == [6, 6] for line in lines)
    for absent in ("old", "zero"):
        kept = models(radio__noise_dbm=-120.0, federation__absent=absent)[0]
        np.testing.assert_array_equal(kept, clean)


@pytest.mark.parametrize(
    "changes", [{"federation__average": "samples"}, {"privacy__clip_norm": 1.0}]
)
def test_what_an_absent_device_would_weigh_must_be_known(changes):
    with pytest.raises(RequestError, match=r"federation\.absent"):
        asking.load(federation__absent="old", **changes)


@pytest.mark.parametrize("absent", ["old", "zero"])
@pytest.mark.parametrize("more", [{}, {"federation__dropout": 0.5}], ids=str)
def test_devices_that_cannot_train_a_segment_are_not_counted_for_it(absent, more):
    """One device of four trains all: of segment 2, it alone is the mean."""
    classes = [
        {"name": "able", "share": 0.25},
        {"name": "capped", "share": 0.75, "max_width": 0.5},
    ]
    simulation = Simulation(
        asking.load(
            **(TINY | {"federation__devices": 4, "radio__noise_dbm": -120.0}),
            federation__absent=absent,
            population__classes=classes,
            **more,
        )[0]
    )
    able = int(np.flatnonzero(simulation.setting.population.max_width == 1)[0])
    inner, outer = simulation.setting.segments.positions
    seen = set()
    for _ in range(6):
        plan, before = simulation.plan(), simulation.global_model.copy()
        updates = list(simulation.outcomes(plan))
        simulation.collect(plan, iter(updates))
        last = before if absent == "old" else np.zeros_like(before)
        models = {update.device: update.parameters for update in updates}
        expected = models[able][outer] if able in models else before[outer]
        np.testing.assert_array_equal(simulation.global_model[outer], expected)
        filled = [models.get(device, last)[inner].astype(np.float64) for device in range(4)]
        if models:
            np.testing.assert_allclose(
                simulation.global_model[inner], np.mean(filled, axis=0), rtol=1e-5, atol=1e-6
            )
        seen.add((able in models, len(models)))
    assert len(seen) > 1 or not more


def test_arrivals_alone_in_a_buffer_leave_nobody_absent():
    asynchronous = {"time__mode": "asynchronous", "federation__absent": "old"}
    asking.load(**asynchronous)
    with pytest.raises(RequestError, match=r"time\.buffer_counts"):
        asking.load(**asynchronous, time__buffer_counts="arrivals")
