"""`device`: checked before anything runs, recorded, and part of what a run's numbers depend on."""

import sys

import pytest
import torch

import slimfl
from slimfl.engines import Workload, choose
from slimfl.errors import RequestError
from slimfl.experiment import Experiment, round_identity
from tests import asking

SMALL = {"dataset": "synthetic", "rounds": 1, "steps": 1, "devices": 2}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_refused_in_one_sentence():
    words = "device 'cuda' is not available: this PyTorch"
    with pytest.raises(RequestError, match=words) as refused:
        asking.run(device="cuda", **SMALL)
    assert "omit device" in str(refused.value)


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:-1", "mps", "cpu:0 "])
def test_a_device_that_is_none_is_refused(device):
    with pytest.raises(RequestError, match="device"):
        asking.run(device=device, **SMALL)


def test_where_a_run_was_computed_is_recorded(tmp_path):
    run = asking.run(out=tmp_path / "run", **SMALL)
    assert run.experiment.device == "cpu"
    assert slimfl.load(tmp_path / "run").experiment.device == "cpu"
    assert asking.run(device="cpu", engine="torch", **SMALL).experiment.device == "cpu"


def test_runs_from_before_there_was_a_choice_keep_their_identity():
    before, now, other = Experiment(), Experiment(device="cpu"), Experiment(device="cuda")
    assert round_identity(before) == round_identity(now)
    assert round_identity(other) != round_identity(now)


class Recorder:
    """In place of the torch engine: there is no GPU to run on here."""

    name, threads = "torch", 1

    def __init__(self, workload, network, device="cpu"):
        self.device = device


@pytest.mark.parametrize(
    ("asked", "expected"),
    [("cuda", "cuda"), ("cuda:1", "cuda:1"), ("cpu", "cpu")],
)
def test_a_gpu_that_is_there_is_used_by_the_torch_engine(monkeypatch, asked, expected):
    sim = slimfl.round.Simulation(asking.run(**SMALL).experiment)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(sys.modules["slimfl.engines.choice"], "TorchEngine", Recorder)
    experiment = sim.experiment.model_copy(update={"device": asked, "engine": "auto"})

    def chosen(**changes):
        changed = experiment.model_copy(update=changes)
        work = Workload(changed, sim.setting.dataset, sim.setting.partition)
        return choose(work, sim.setting.network)

    choice = chosen()
    assert choice.resolved["device"] == expected
    if expected != "cpu":
        assert choice.engine.device == expected
        with pytest.raises(RequestError, match="native engine cannot run this: it computes on"):
            chosen(engine="native")
        with pytest.raises(RequestError, match="this machine has 2"):
            chosen(device="cuda:2")
