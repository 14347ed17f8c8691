"""The state of methods and channels between rounds: stored exactly, or refused in a sentence."""

from dataclasses import dataclass

import numpy as np
import pytest

from slimfl.data import synthetic
from slimfl.errors import RequestError
from slimfl.experiment import build
from slimfl.methods import Merge, SlimFL
from slimfl.round import Simulation
from slimfl.round.parts import Kept
from slimfl.runs.storage import checkpoint
from slimfl.runs.storage.checkpoint import Checkpoint
from tests import asking

DATASET = synthetic(train=200, test=50, size=6)

STORED = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
STORED += ["float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", STORED)
def test_whole_and_real_numbers_come_back_as_they_were(dtype, tmp_path):
    values = np.random.default_rng(0).integers(0, 100, (3, 4)).astype(dtype)
    if values.dtype.kind == "f":
        values /= 7
    state = Kept("x", {"table": values.T, "number": values[1, 1], "none": []}).state()
    checkpoint.write(tmp_path, Checkpoint(1, state, {}))
    read = checkpoint.newest(tmp_path).tensors
    assert read["table"].dtype == values.dtype
    np.testing.assert_array_equal(read["table"], values.T)
    assert read["number"].shape == ()
    assert read["number"] == values[1, 1]
    assert read["none"].shape == (0,)


@pytest.mark.parametrize(
    "value",
    [1j, np.ones(2, np.complex64), "text", None, object(), [1, "a"], np.longdouble(1)],
    ids=lambda value: type(value).__name__,
)
def test_what_checkpoints_cannot_hold_is_refused_with_a_way_out(value):
    with pytest.raises(RequestError, match=r"'here' of type .* two\s+arrays|'here' of type"):
        Kept("method 'x'", {"here": value})


@pytest.mark.parametrize("state", [None, [1], {3: np.ones(2)}])
def test_a_state_is_a_dictionary_of_names(state):
    with pytest.raises(RequestError, match="not a dictionary"):
        Kept("method 'x'", state)


@dataclass(frozen=True)
class Growing(SlimFL):
    """What it keeps, or the model, has another shape after the first round."""

    name: str = "growing"
    what: str = "state"

    def start(self, model):
        return {"seen": np.zeros(1)}

    def merge(self, mean, state):
        if self.what == "state":
            return Merge(mean, {"seen": np.append(state["seen"], 1.0)})
        return Shorter(mean, state)


class Shorter(Merge):
    def result(self):
        return self.mean.result()[:-1], self.state


@pytest.mark.parametrize(
    ("what", "words"), [("state", r"\[1\].*\[2\]"), ("model", "a model of shape")]
)
def test_what_changes_its_shape_is_named_and_nothing_of_the_round_stays(what, words):
    experiment = build({"rounds": 2, "training": {"steps": 1}, "engine": "torch"})
    sim = Simulation(experiment, dataset=DATASET, method=Growing((0.5, 1.0), what=what))
    before = sim.global_model.copy()
    with pytest.raises(RequestError, match=f"'growing'.*{words}"):
        sim.step()
    assert sim.round == 0
    np.testing.assert_array_equal(sim.global_model, before)


@dataclass(frozen=True)
class Double(SlimFL):
    """Computes in float64 and returns a view that is not contiguous."""

    name: str = "double"

    def merge(self, mean, state):
        return Wide(mean, state)


class Wide(Merge):
    def result(self):
        return np.repeat(self.mean.result().astype(np.float64), 2)[::2], self.state


@pytest.mark.parametrize("engine", ["torch", "native"])
def test_a_model_in_another_layout_or_precision_is_taken_as_float32(engine):
    values = {"dataset": DATASET, "rounds": 2, "training__steps": 2, "engine": engine}
    plain = asking.run(**values)
    double = asking.run(method=Double((0.5, 1.0)), **values)
    assert double.parameters.dtype == np.float32
    np.testing.assert_array_equal(double.parameters, plain.parameters)
