"""Trackers get every round once, by the real packages, without a network."""

import json
import sys
import time
from types import ModuleType

import pytest

import slimfl
from slimfl.errors import RequestError
from slimfl.experiment import Experiment
from slimfl.round import RunFolder
from slimfl.runs.trackers import IDS, check_trackers, parameters, scalars, seed_group
from tests import asking

SETTINGS = {
    "data__dataset": "synthetic", "data__train_samples": 200, "data__test_samples": 50,
    "rounds": 5, "training__steps": 1, "federation__checkpoint_every": 3,
}  # fmt: skip


class Broken(slimfl.Callback):
    """Ends the run in round 4, of which the newest checkpoint is that of round 3."""

    def __init__(self, error):
        self.error = error

    def on_round(self, record, model):
        if record.round == 4:
            slimfl.round.Simulation.step = self.fail

    def fail(self, *_):
        raise self.error


@pytest.fixture
def broken(monkeypatch):
    step = slimfl.round.Simulation.step

    def run(error=None, **values):
        monkeypatch.setattr(slimfl.round.Simulation, "step", step)
        error = error or ValueError("broken")
        with pytest.raises(type(error)):
            asking.run(callbacks=[Broken(error)], **{**SETTINGS, **values})
        monkeypatch.setattr(slimfl.round.Simulation, "step", step)

    return run


def resumed(folder, **values):
    return [(line.round, dict(scalars(line))) for line in slimfl.resume(folder, **values).lines]


# what is logged


def test_everything_that_a_radio_costs_is_logged(tmp_path):
    """The names are those of the metrics; bits are per segment."""
    run = asking.run(
        **SETTINGS, privacy__clip_norm=1.0, privacy__noise_multiplier=1.0,
        data__normalise="centred",
    )  # fmt: skip
    for line in run.lines:
        values = dict(scalars(line))
        for key in ("airtime_s", "clock_s", "energy_j", "compute_energy_j"):
            assert values[key] == line[key]
        assert values["privacy/epsilon"] == line.privacy.epsilon > 0
        for group in ("bits_sent", "bits_decoded", "bits_dropped"):
            found = [values[f"{group}/segment{segment}"] for segment in (1, 2)]
            assert found == line[group]


def test_every_key_that_has_a_value_is_a_flat_parameter():
    experiment = Experiment(data={"alpha": 0.3}, seed=4, method_options={})
    flat = parameters(experiment)
    assert (flat["data.alpha"], flat["seed"], flat["method"]) == (0.3, 4, "slimfl")
    assert flat["radio.channel"] == experiment.radio.channel
    tree = experiment.model_dump(exclude_none=True)
    sections = ("data", "model", "training", "radio", "federation", "time", "energy", "privacy")
    for section in sections:
        assert {f"{section}.{key}" for key in tree[section]} <= flat.keys()
    assert not flat.keys() & set(sections)


def test_a_group_is_the_seeds_of_one_experiment():
    one = seed_group(Experiment(seed=1))
    assert one == seed_group(Experiment(seed=2, rounds=50))
    assert one != seed_group(Experiment(seed=1, data={"alpha": 0.3}))
    assert "slimfl" in one


# TensorBoard


def read_tensorboard(folder):
    """The scalars, and group, status and parameters as the tab HParams has them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import api_pb2, metadata

    events = EventAccumulator(str(folder / "tensorboard"), size_guidance={"scalars": 0})
    events.Reload()
    found = {
        tag: [(event.step, event.value) for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }
    start, end = (
        events.SummaryMetadata(tag).plugin_data.content
        for tag in (metadata.SESSION_START_INFO_TAG, metadata.SESSION_END_INFO_TAG)
    )
    start = metadata.parse_session_start_info_plugin_data(start)
    status = api_pb2.Status.Name(metadata.parse_session_end_info_plugin_data(end).status)
    return found, start, status


def check_tensorboard(folder, expected):
    found, start, status = read_tensorboard(folder)
    assert found.keys() == expected[0][1].keys()
    for tag, events in found.items():
        assert [step for step, _ in events] == [round for round, _ in expected], tag
        known = [values[tag] for _, values in expected]
        assert [value for _, value in events] == pytest.approx(known), tag
    experiment = RunFolder.open(folder).experiment()
    assert start.group_name == seed_group(experiment)
    assert start.hparams["data.alpha"].number_value == experiment.data.alpha
    assert start.hparams["radio.channel"].string_value == experiment.radio.channel
    return status


def test_tensorboard_holds_every_round_once_after_a_failure(tmp_path, broken):
    broken(out=tmp_path / "run", track=["tensorboard"])
    found, _, status = read_tensorboard(tmp_path / "run")
    assert [step for step, _ in found["energy_j"]] == [1, 2, 3, 4]
    assert status == "STATUS_FAILURE"
    expected = resumed(tmp_path / "run")
    assert check_tensorboard(tmp_path / "run", expected) == "STATUS_SUCCESS"


def test_tensorboard_gets_the_rounds_before_it_was_asked_for(tmp_path):
    asking.run(out=tmp_path / "run", **SETTINGS)
    file = tmp_path / "run/experiment.toml"
    file.write_text(file.read_text().replace("track = []", 'track = ["tensorboard"]'))
    expected = resumed(tmp_path / "run", rounds=6)
    assert len(expected) == 6
    assert check_tensorboard(tmp_path / "run", expected) == "STATUS_SUCCESS"


# MLflow


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    mlflow = pytest.importorskip("mlflow")
    earlier = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    yield mlflow
    mlflow.set_tracking_uri(earlier)


def check_mlflow(mlflow, expected, **filters):
    """The one run that has these parameters has these rounds, each once."""
    by = " and ".join(f"params.`{key}` = '{value}'" for key, value in filters.items())
    [run] = mlflow.search_runs(filter_string=by, output_format="list", search_all_experiments=True)
    client = mlflow.MlflowClient()
    for key, last in expected[-1][1].items():
        history = client.get_metric_history(run.info.run_id, key)
        known = {round: values[key] for round, values in expected if key in values}
        assert sorted(metric.step for metric in history) == list(known), key
        assert {metric.step: metric.value for metric in history} == pytest.approx(known), key
        assert run.data.metrics[key] == pytest.approx(last)
    return run


@pytest.mark.parametrize(
    ("error", "status"), [(ValueError("broken"), "FAILED"), (KeyboardInterrupt(), "KILLED")]
)
def test_mlflow_continues_the_run_of_the_folder(tmp_path, mlflow, broken, error, status):
    """Also while the user has a run of his own, which stays open."""
    with mlflow.start_run() as mine:
        broken(error, out=tmp_path / "run", track=["mlflow"], data__alpha=0.3, seed=7)
        [run] = mlflow.search_runs(filter_string="params.seed = '7'", output_format="list")
        assert run.info.status == status
        expected = resumed(tmp_path / "run", rounds=6)
        assert mlflow.active_run().info.run_id == mine.info.run_id
    experiment = RunFolder.open(tmp_path / "run").experiment()
    asked = {"data.alpha": 0.3, "seed": 7, "method": "slimfl"}
    asked["radio.channel"] = experiment.radio.channel
    run = check_mlflow(mlflow, expected, **asked)
    assert run.info.status == "FINISHED"
    assert run.data.tags["rounds"] == "6"
    assert run.data.tags["group"] == seed_group(experiment)


def test_mlflow_begins_a_run_where_the_store_does_not_have_it(tmp_path, mlflow):
    asking.run(out=tmp_path / "run", track=["mlflow"], **SETTINGS)
    mlflow.set_tracking_uri((tmp_path / "elsewhere").as_uri())
    check_mlflow(mlflow, resumed(tmp_path / "run", rounds=6), method="slimfl")


# Weights & Biases


def read_wandb(folder):
    """For every file of the folder, in the order of time: id, group, config, rounds, status.

    A process of its own writes them, on a busy machine after `finish` has returned.
    """
    end, files = time.monotonic() + 60, wandb_files(folder)
    while not all("status" in one for one in files):
        assert time.monotonic() < end, f"a file without an end: {files}"
        time.sleep(0.2)
        files = wandb_files(folder)
    return files


def wandb_files(folder):
    datastore = pytest.importorskip("wandb.sdk.internal.datastore")
    from wandb.proto.wandb_internal_pb2 import Record

    files = []
    paths = (folder / "wandb").glob("*run-*/run-*.wandb")
    for path in sorted(paths, key=lambda one: one.stat().st_mtime_ns):
        store, config, rounds, seen = datastore.DataStore(), {}, {}, {}
        store.open_for_scan(str(path))
        while data := store.scan_data():
            record = Record()
            record.ParseFromString(data)
            kind = record.WhichOneof("record_type")
            if kind == "run":
                seen |= {"id": record.run.run_id, "group": record.run.run_group}
                seen |= {"project": record.run.project}
                config |= {one.key: json.loads(one.value_json) for one in record.run.config.update}
            elif kind == "config":
                config |= {one.key: json.loads(one.value_json) for one in record.config.update}
            elif kind == "history":
                values = {
                    one.key or "/".join(one.nested_key): json.loads(one.value_json)
                    for one in record.history.item
                }
                step = values["_step"]
                assert step not in rounds, "logged twice"
                rounds[step] = {k: v for k, v in values.items() if not k.startswith("_")}
            elif kind == "exit":
                seen["status"] = record.exit.exit_code
        files.append({**seen, "config": config, "rounds": list(rounds.items())})
    return files


def test_wandb_continues_the_run_of_the_folder(tmp_path, monkeypatch, broken):
    pytest.importorskip("wandb")
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    broken(out=tmp_path / "run", track=["wandb"], data__alpha=0.3, seed=7)
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    expected = resumed(tmp_path / "run", rounds=6)
    first, second = read_wandb(tmp_path / "run")
    assert first["id"] == second["id"] == json.loads((tmp_path / "run" / IDS).read_text())["wandb"]
    assert (first["status"], second["status"]) == (1, 0)
    assert (first["project"], second["project"]) == ("slimfl", "mine")
    experiment = RunFolder.open(tmp_path / "run").experiment()
    assert first["group"] == second["group"] == seed_group(experiment)
    assert first["rounds"] == [(round, pytest.approx(one)) for round, one in expected[:4]]
    # offline nobody knows what the first file has
    assert second["rounds"] == [(round, pytest.approx(one)) for round, one in expected]
    assert (first["config"]["rounds"], second["config"]["rounds"]) == (5, 6)
    for one in (first, second):
        assert (one["config"]["data__alpha"], one["config"]["seed"]) == (0.3, 7)
        assert one["config"]["radio__channel"] == experiment.radio.channel


# all of them


@pytest.mark.parametrize("text", ["[]", "{", '{"wandb": 3}', '{"wandb": "../../x"}'])
def test_ids_that_are_none_are_refused(text, tmp_path):
    asking.run(out=tmp_path / "run", track=["tensorboard"], **SETTINGS)
    (tmp_path / "run" / IDS).write_text(text)
    with pytest.raises(RequestError, match=r"trackers\.json is damaged.*remove it"):
        slimfl.resume(tmp_path / "run", rounds=6)


def test_a_tracker_that_is_not_installed_is_a_wrong_request(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(RequestError, match=r"pip install '\.\[wandb\]'"):
        asking.run(out=tmp_path / "run", track=["wandb"], **SETTINGS)
    assert not (tmp_path / "run").exists()


def test_a_folder_with_the_name_of_a_tracker_is_no_tracker(tmp_path, monkeypatch):
    (tmp_path / "wandb").mkdir()  # where Weights & Biases keeps its logs
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    with pytest.raises(RequestError, match="wandb is not installed"):
        check_trackers(("wandb",))


def test_an_error_in_a_tracker_does_not_end_the_run(tmp_path, monkeypatch, caplog):
    mlflow = ModuleType("mlflow")
    mlflow.__spec__ = sys.__spec__

    def refuse(**_):
        raise ConnectionError("no server")

    mlflow.start_run = refuse
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    run = asking.run(out=tmp_path / "run", track=["mlflow"], **SETTINGS)
    assert len(run.lines) == 5
    assert "callback MLflow failed" in caplog.text
