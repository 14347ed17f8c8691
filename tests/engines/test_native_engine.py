"""The native engine and the torch engine are interchangeable: same round, same numbers."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import slimfl
from slimfl.data import synthetic
from slimfl.errors import RequestError
from slimfl.experiment import build
from slimfl.methods import SlimFL, Work
from slimfl.round import Simulation

DATASET = synthetic(train=260, test=90, size=7)


def rounds(engine, count=2, method_object=None, **sections):
    experiment = build({"engine": engine, "rounds": count, "threads": 2, **sections})
    sim = Simulation(experiment, dataset=DATASET, method=method_object)
    assert sim.engine.name == engine
    start = sim.global_model.copy()
    return start, sim, [sim.step() for _ in range(count)]


def assert_same(**sections):
    start, torch_sim, torch_lines = rounds("torch", **sections)
    _, native_sim, native_lines = rounds("native", **sections)
    moved = np.abs(torch_sim.global_model - start).max()
    assert moved > 1e-4
    difference = np.abs(native_sim.global_model - torch_sim.global_model).max()
    assert difference < 5e-3 * moved + 2e-6
    for a, b in zip(torch_lines, native_lines, strict=True):
        assert a["decoded"] == b["decoded"]
        assert b["accuracy"] == pytest.approx(a["accuracy"], abs=0.025)  # two samples of 90
        assert b["loss"] == pytest.approx(a["loss"], rel=2e-3)
        assert b["training_loss"] == pytest.approx(a["training_loss"], rel=2e-3)
    states = torch_sim.engine.states.export(), native_sim.engine.states.export()
    assert states[0].keys() == states[1].keys()


@pytest.mark.parametrize("method", ["slimfl", "vanilla-0.5x", "vanilla-1.0x"])
@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
def test_a_round_of_every_method(method, optimiser):
    training = {"optimiser": optimiser, "epochs": 1, "batch_size": 16, "weight_decay": 1e-4}
    assert_same(method=method, training=training)


@pytest.mark.parametrize("algorithm", ["slimtrain", "ustrain"])
@pytest.mark.parametrize("order", ["sequential", "accumulate"])
def test_the_other_algorithms(algorithm, order):
    training = {"algorithm": algorithm, "order": order, "steps": 3, "batch_size": 8}
    training |= {"sampled_widths": 3}
    assert_same(training=training, model={"widths": (0.25, 0.5, 0.75, 1.0)})


@dataclass(frozen=True)
class SomeWidths(SlimFL):
    """A method whose devices train and send a part of the widths only."""

    trained: tuple[int, ...] = ()
    name: str = "some-widths"

    def evaluates(self):
        return self.trained

    def assign(self, device, round, random):
        return Work(self.trained, tuple((i,) for i in range(max(self.trained) + 1)))


@pytest.mark.parametrize("widths", [(0,), (1,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize(
    ("algorithm", "order"),
    [
        ("sustrain", "sequential"),
        ("slimtrain", "sequential"),
        ("slimtrain", "accumulate"),
        ("ustrain", "sequential"),
    ],
)
def test_some_of_the_widths_without_the_full_one(widths, algorithm, order):
    assert_same(
        method_object=SomeWidths((0.25, 0.5, 1.0), trained=widths),
        training={"algorithm": algorithm, "order": order, "steps": 3, "batch_size": 8},
        model={"widths": (0.25, 0.5, 1.0)},
    )


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    widths=st.lists(st.sampled_from([0.2, 0.3, 0.5, 0.6, 0.8]), max_size=3, unique=True),
    channels=st.tuples(st.integers(2, 20), st.integers(2, 20), st.integers(2, 20)),
    weights_seed=st.integers(0, 3),
)
def test_random_networks_and_widths(widths, channels, weights_seed):
    assert_same(
        seed=weights_seed,
        model={"widths": (*sorted(widths), 1.0), "options": {"channels": channels}},
        training={"steps": 2, "batch_size": 8, "optimiser": "sgd", "learning_rate": 0.05},
    )


def test_bits_do_not_depend_on_the_number_of_threads():
    results = []
    for threads in (1, 2, 5):
        experiment = build({"engine": "native", "threads": threads, "training": {"steps": 3}})
        sim = Simulation(experiment, dataset=DATASET)
        lines = [sim.step() for _ in range(2)]
        results.append((sim.global_model.tobytes(), [line["loss"] for line in lines]))
    assert results[0] == results[1] == results[2]


def test_many_devices_stream_in_waves_in_the_order_of_the_tasks(monkeypatch):
    from slimfl.engines import native_engine

    plain = rounds("native", federation={"devices": 23}, data={"min_samples": 1})[1].global_model
    monkeypatch.setattr(native_engine, "WAVE", 2)
    waves = rounds("native", federation={"devices": 23}, data={"min_samples": 1})[1].global_model
    np.testing.assert_array_equal(plain, waves)


def test_auto_takes_the_native_engine_where_it_can_and_says_why():
    # the second segment of the network below is empty
    experiment = build({"training": {"steps": 1}, "radio": {"rates": "equal"}})
    native = Simulation(experiment, dataset=DATASET)
    assert native.engine.name == "native"
    assert "native engine" in native.setting.engine_reason

    own = slimfl.nn.SlimLinear(49, 10, slim_in=False, slim_out=False)
    from torch import nn

    other = Simulation(experiment, dataset=DATASET, network=nn.Sequential(nn.Flatten(), own))
    assert other.engine.name == "torch"
    assert "Sequential" in other.setting.engine_reason


def test_asking_for_the_native_engine_where_it_cannot_run_is_a_wrong_request(monkeypatch):
    from slimfl.engines import native_engine

    monkeypatch.setattr(native_engine, "native_module", lambda: None)
    with pytest.raises(RequestError, match="compiler"):
        Simulation(build({"engine": "native"}), dataset=DATASET)
    assert Simulation(build({"engine": "auto"}), dataset=DATASET).engine.name == "torch"


def test_taking_out_what_a_wave_needs_changes_no_bit(monkeypatch):
    """Of a training set much larger than what is used, only that goes to the native module."""
    from slimfl.engines import native_engine

    def trained(sparse):
        monkeypatch.setattr(native_engine, "_SPARSE", sparse)
        small = {"dataset": "synthetic"}
        sim = Simulation(
            build(
                {
                    "engine": "native",
                    "data": small,
                    "training": {"steps": 2, "batch_size": 4},
                    "federation": {"devices": 20, "participation": 0.2},
                }
            )
        )
        for _ in range(3):
            sim.step()
        return sim.global_model

    assert (trained(1) == trained(10**9)).all()
