"""Trackers receive every round; TensorBoard is the real one, the others are stand-ins."""

import sys
from types import ModuleType

import pytest

import slimfl
from slimfl.errors import RequestError
from slimfl.federation.trackers import check_trackers, scalars

SETTINGS = {"data__dataset": "synthetic", "rounds": 3, "training__steps": 1}


def test_tensorboard_holds_every_round(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = slimfl.run(out=tmp_path / "run", track=["tensorboard"], **SETTINGS)
    events = EventAccumulator(str(tmp_path / "run/tensorboard"))
    events.Reload()
    recorded = events.Scalars("accuracy/1.0x")
    assert [event.step for event in recorded] == [1, 2, 3]
    expected = [line["accuracy"]["1.0x"] for line in run.lines]
    assert [event.value for event in recorded] == pytest.approx(expected)


def test_mlflow_and_wandb_are_told_the_same(tmp_path, monkeypatch):
    told = {"mlflow": [], "wandb": []}
    mlflow = ModuleType("mlflow")
    mlflow.start_run = lambda run_name: told["mlflow"].append(run_name)
    mlflow.log_dict = lambda tree, name: told["mlflow"].append(tree["rounds"])
    mlflow.log_metrics = lambda values, step: told["mlflow"].append((step, values))
    mlflow.end_run = lambda: told["mlflow"].append("end")

    class Run:
        def log(self, values, step):
            told["wandb"].append((step, values))

        def finish(self):
            told["wandb"].append("end")

    wandb = ModuleType("wandb")

    def init(project, name, dir, config):
        told["wandb"] += [name, config["rounds"]]
        return Run()

    wandb.init = init
    for module in (mlflow, wandb):
        module.__spec__ = sys.__spec__
        monkeypatch.setitem(sys.modules, module.__name__, module)
    run = slimfl.run(out=tmp_path / "run", track=["mlflow", "wandb"], **SETTINGS)
    expected = [(line["round"], dict(scalars(line))) for line in run.lines]
    assert told["mlflow"] == ["run", 3, *expected, "end"]
    assert told["wandb"] == ["run", 3, *expected, "end"]


def test_a_tracker_that_is_not_installed_is_a_wrong_request(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(RequestError, match=r"pip install '\.\[wandb\]'"):
        slimfl.run(out=tmp_path / "run", track=["wandb"], **SETTINGS)
    assert not (tmp_path / "run").exists()


def test_a_folder_with_the_name_of_a_tracker_is_no_tracker(tmp_path, monkeypatch):
    (tmp_path / "wandb").mkdir()  # where Weights & Biases keeps its logs
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(RequestError, match="wandb is not installed"):
        check_trackers(("wandb",))


def test_an_error_in_a_tracker_does_not_end_the_run(tmp_path, monkeypatch, caplog):
    mlflow = ModuleType("mlflow")
    mlflow.__spec__ = sys.__spec__

    def refuse(**_):
        raise ConnectionError("no server")

    mlflow.start_run = refuse
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    run = slimfl.run(out=tmp_path / "run", track=["mlflow"], **SETTINGS)
    assert len(run.lines) == 3
    assert "callback MLflow failed" in caplog.text
