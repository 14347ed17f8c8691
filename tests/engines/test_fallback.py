"""Two engines in one round: what the native one cannot train, torch does."""

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from slimfl.data import synthetic
from slimfl.engines import Task
from slimfl.engines.native_engine import NativeEngine
from slimfl.errors import RequestError
from slimfl.experiment import build
from slimfl.experiment.naming import as_options, trusting
from slimfl.methods import SlimFL, Work
from slimfl.round import Simulation
from slimfl.training import STEPS

HOWTO = Path(__file__).parents[2] / "docs/howto"
DATASET = synthetic(train=260, test=90, size=7)
OWN_STEP = "mylab.smoothing:SmoothedSuperposition"


@pytest.fixture(autouse=True)
def _mylab(monkeypatch):
    monkeypatch.syspath_prepend(str(HOWTO))
    with trusting(["mylab"]):
        yield


@dataclass(frozen=True)
class Mixed(SlimFL):
    """Every third device takes a step that is not written in C++."""

    name: str = "mixed"

    def assign(self, device, round, random):
        own = {"step": OWN_STEP, "options": {"smoothing": 0.2}}
        chosen = own if device.id % 3 == 0 else {}
        return Work((0, 1), ((0,), (1,)), **chosen)


def simulation(engine, method=None, **training):
    experiment = build(
        {
            "engine": engine,
            "rounds": 3,
            "threads": 2,
            "training": {"steps": 3, "batch_size": 8, **training},
        }
    )
    return Simulation(experiment, dataset=DATASET, method=method or Mixed((0.5, 1.0)))


@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
def test_a_round_of_two_engines_is_that_of_torch_alone(optimiser, caplog):
    both, alone = (simulation(engine, optimiser=optimiser) for engine in ("native", "torch"))
    assert isinstance(both.engine, NativeEngine)
    start = alone.global_model.copy()
    with caplog.at_level(logging.WARNING):
        lines = [(both.step(), alone.step()) for _ in range(3)]
    moved = np.abs(alone.global_model - start).max()
    assert moved > 1e-4
    assert np.abs(both.global_model - alone.global_model).max() < 5e-3 * moved + 2e-6
    for a, b in lines:
        assert a["devices"] == b["devices"] == list(range(10))
        assert a["images"] == b["images"]
        assert a["training_loss"] == pytest.approx(b["training_loss"], rel=2e-3)
    said = [record.message for record in caplog.records if "torch engine" in record.message]
    assert len(said) == 1, "once in a run, not in every round"
    assert "4 of 10 devices" in said[0]
    assert OWN_STEP in said[0]
    kept = both.engine.states.export(), alone.engine.states.export()
    assert kept[0].keys() == kept[1].keys(), "one place for what devices keep"


def test_outcomes_come_in_the_order_of_the_tasks():
    sim = simulation("native")
    tasks = sim.plan().tasks[::-1]
    tasks = tasks[1::2] + tasks[::2]
    outcomes = list(sim.engine.train(1, sim.global_model, tasks))
    assert [one.device for one in outcomes] == [task.device for task in tasks]
    alone = simulation("torch")
    for task, one in zip(tasks, outcomes, strict=True):
        [expected] = alone.engine.train(1, alone.global_model, [task])
        np.testing.assert_allclose(one.parameters, expected.parameters, atol=1e-4)


def test_without_such_a_device_torch_is_never_made():
    sim = simulation("native", SlimFL((0.5, 1.0)))
    sim.step()
    assert "general" not in vars(sim.engine)


WIDTHS = [(0,), (1,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]


@pytest.mark.parametrize("widths", WIDTHS, ids=str)
@pytest.mark.parametrize("step", [None, *STEPS])
def test_native_computes_what_it_says_it_supports(step, widths):
    """Every step at every set of widths: the numbers of torch, or the refusal of torch."""
    engines = []
    for engine in ("native", "torch"):
        tree = {"engine": engine, "rounds": 1, "model": {"widths": [0.25, 0.5, 1.0]}}
        tree["training"] = {"steps": 2, "batch_size": 8}
        sim = Simulation(build(tree), dataset=DATASET)
        engines.append(sim.engine)
    native = engines[0]
    work = Work(widths, step=step)
    assert native.why_not(work) is None
    if step == "one-width" and len(widths) > 1:
        for engine in engines:
            with pytest.raises(RequestError, match=f"one width, but {len(widths)} are"):
                list(engine.train(1, sim.global_model, [Task(3, work)]))
        return
    [a], [b] = (engine.train(1, sim.global_model, [Task(3, work)]) for engine in engines)
    moved = np.abs(b.parameters - sim.global_model).max()
    assert moved > 1e-4
    assert np.abs(a.parameters - b.parameters).max() < 5e-3 * moved + 2e-6
    np.testing.assert_array_equal(a.images_seen, b.images_seen)
    np.testing.assert_array_equal(np.isnan(a.losses), np.isnan(b.losses))
    np.testing.assert_allclose(a.losses, b.losses, rtol=2e-3)


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (Work((0, 1), step=OWN_STEP), OWN_STEP),
        (Work((0, 1), step="sustrain", options=as_options({"x": 1})), "options"),
        (Work((1,), step="one-width", options=as_options({"x": 1})), "options"),
    ],
    ids=["own step", "options", "one width with options"],
)
def test_native_says_why_not(work, words):
    assert words in simulation("native").engine.why_not(work)


def test_options_of_what_is_built_in_are_refused():
    for tree in (
        {"training": {"options": {"smoothing": 0.1}}},
        {"radio": {"options": {"correlation": 0.1}}},
        {"method_options": {"weak": 2}},
    ):
        with pytest.raises(RequestError, match="works only with your own part"):
            build(tree)
