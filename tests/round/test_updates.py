"""Updates that must never enter a model, and how far one may move it."""

import logging
from dataclasses import replace

import numpy as np
import pytest

from slimfl.engines import Update
from slimfl.errors import RunError
from slimfl.experiment import FederationSection, build
from slimfl.round import RunFolder, Simulation, run
from slimfl.round.stages import RefusedUpdateError, bounded, problem

SOUND = np.ones(6, np.float32)


def test_what_is_not_finite_or_of_another_shape_is_a_problem():
    assert problem(SOUND, SOUND) is None
    for bad in (np.nan, np.inf, -np.inf):
        broken = SOUND.copy()
        broken[5] = bad
        assert "NaN" in problem(broken, SOUND)
    for shape in ((5,), (7,), (1, 6), ()):
        assert str(shape) in problem(np.ones(shape, np.float32), SOUND)


SECTION = FederationSection(clip_norm=5.0, clip_value=4.0)
MODEL = np.array([1, 1, 1, 1, 9], np.float32)
WHERE = np.arange(4)


def test_an_update_within_the_bounds_is_not_touched():
    update = MODEL + np.float32(2.4)
    within, norm = bounded(update, MODEL, WHERE, SECTION)
    assert within is update
    assert norm == pytest.approx(4.8)


@pytest.mark.parametrize(
    ("change", "left"),
    [([3, 4, 0, 0.5], None), ([3, 4, 12, 0], None), ([4.5, 0, 0, 0], [4, 0, 0, 0])],
)
def test_a_larger_change_is_bounded_and_nothing_else(change, left):
    update = MODEL.copy()
    update[WHERE] += np.array(change, np.float32)
    update[4] = 3e38  # did not arrive, so it counts for nothing
    within, norm = bounded(update, MODEL, WHERE, SECTION)
    assert norm == pytest.approx(np.linalg.norm(change))
    moved = within[WHERE] - MODEL[WHERE]
    assert np.linalg.norm(moved) <= 5 + 1e-5
    assert np.abs(moved).max() <= 4 + 1e-5
    if left is not None:
        np.testing.assert_allclose(moved, left)


def test_a_change_that_no_training_makes_is_refused():
    update = MODEL.copy()
    for where, size in ((0, 3e38), (3, -4001.5)):
        update[where] = size
        with pytest.raises(RefusedUpdateError, match="no training"):
            bounded(update, MODEL, WHERE, SECTION)
        update[where] = 1


def lying(simulation, change, since=1):
    """Device 2 of a simulation sends other parameters than it has trained."""
    honest = simulation.engine.train

    def train(number, model, tasks):
        for outcome in honest(number, model, tasks):
            if isinstance(outcome, Update) and outcome.device == 2 and number >= since:
                outcome = replace(outcome, parameters=change(outcome.parameters))
            yield outcome

    simulation.engine.train = train
    return simulation


def to(value):
    return lambda parameters: np.full_like(parameters, value)


def described(mode="wait-for-all", **federation):
    return build(
        {
            "rounds": 4,
            "threads": 1,
            "data": {"dataset": "synthetic", "train_samples": 200, "test_samples": 50},
            "training": {"steps": 2},
            "radio": {"noise_dbm": -200.0},
            "federation": {"devices": 4, **federation},
            "time": {"mode": mode},
        }
    )


@pytest.mark.parametrize("mode", ["wait-for-all", "asynchronous"])
@pytest.mark.parametrize(("size", "listed"), [(3e38, "refused"), (2e3, "clipped")])
def test_a_device_that_sends_huge_numbers_does_not_poison_a_run(
    mode, size, listed, tmp_path, caplog
):
    simulation = lying(Simulation(described(mode)), to(size))
    folder = RunFolder.create(
        tmp_path / "run", simulation.experiment, simulation.setting.provenance()
    )
    with caplog.at_level(logging.WARNING):
        run(simulation, folder, until=2)
    resumed = lying(Simulation(described(mode)), to(size))
    lines = run(resumed, folder)
    assert len(lines) == 4
    other = {"refused", "clipped"} - {listed}
    for line in lines:
        assert line[listed] == [2]
        assert not line.as_json().get(other.copy().pop())
        assert None not in line.loss.values()
    assert np.abs(resumed.global_model).max() < 1000
    assert "update of device 2" in caplog.text


@pytest.mark.parametrize("mode", ["wait-for-all", "asynchronous"])
def test_honest_updates_are_not_touched(mode):
    wide, narrow = (
        run(Simulation(described(mode, **bound)))
        for bound in ({"clip_norm": 1e12, "clip_value": 1e12}, {})
    )
    for a, b in zip(wide, narrow, strict=True):
        assert a.model_copy(update={"seconds": None}) == b.model_copy(update={"seconds": None})
        assert "clipped" not in b


@pytest.mark.parametrize("mode", ["wait-for-all", "asynchronous"])
@pytest.mark.parametrize("what", ["model", "loss"])
def test_a_merged_model_from_which_no_run_can_go_on_ends_it_before_it_is_stored(
    mode, what, tmp_path
):
    """Here the bounds let large numbers through."""
    wide = described(mode, clip_norm=1e12, clip_value=1e12)
    simulation = lying(Simulation(wide), to(1e9), since=3)
    tested, merged = simulation.engine.evaluate, simulation.setting.method

    class Overflowing:
        def __getattr__(self, name):
            return getattr(merged, name)

        def merge(self, mean, state):
            merge = merged.merge(mean, state)
            whole = merge.result

            def result():
                model, state = whole()
                return np.where(model > 1e3, np.float32(np.inf), model), state

            merge.result = result
            return merge

    def evaluate(model, widths, **more):
        loss = np.inf if np.abs(model).max() > 1e3 else 1.0
        return [replace(score, loss=loss) for score in tested(model, widths, **more)]

    if what == "model":
        simulation.setting.method = Overflowing()
    else:
        simulation.engine.evaluate = evaluate
    folder = RunFolder.create(
        tmp_path / "run", simulation.experiment, simulation.setting.provenance()
    )
    with pytest.raises(RunError, match=f"round 3: .*{what}.* device 2, with a norm"):
        run(simulation, folder)
    assert len(folder.intact_metrics().lines) == folder.checkpointed_round() == 2
    assert len(run(Simulation(wide), folder)) == 4
