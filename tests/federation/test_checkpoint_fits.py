"""A run goes on with its own checkpoints, under its own settings, or not at all."""

import json
import re
import shutil

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import slimfl
from slimfl.errors import RequestError
from slimfl.federation import checkpoint as checkpoints

SETTINGS = {
    "rounds": 4,
    "data__dataset": "synthetic",
    "data__train_samples": 300,
    "data__test_samples": 50,
    "training__steps": 1,
    "threads": 1,
    "federation__devices": 5,
}


@pytest.fixture(scope="module")
def stopped_once(tmp_path_factory):
    """A run of which two rounds of four are done."""
    path = tmp_path_factory.mktemp("runs") / "stopped"
    slimfl.run(out=path, **SETTINGS | {"rounds": 2})
    edit(path, rounds=4)
    return path


@pytest.fixture
def stopped(stopped_once, tmp_path):
    return shutil.copytree(stopped_once, tmp_path / "stopped")


def edit(path, **values):
    """Change keys of experiment.toml by hand."""
    file = path / "experiment.toml"
    text = file.read_text()
    for key, value in values.items():
        text, count = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", text)
        assert count == 1, key
    file.write_text(text)


def contents(path):
    return {p: p.read_bytes() for p in path.rglob("*") if p.is_file() and p.name != ".lock"}


def assert_refused(path, *words):
    before = contents(path)
    with pytest.raises(RequestError) as error:
        slimfl.resume(path)
    for word in words:
        assert word in str(error.value)
    assert "\n" not in str(error.value)
    assert contents(path) == before, "nothing is lost"
    return str(error.value)


def rewrite(file, change):
    """Change a checkpoint as somebody would who knows how its checksum is made."""
    with safe_open(file, "numpy") as opened:
        state = json.loads(opened.metadata()["state"])
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    change(state, tensors)
    text = json.dumps(state, sort_keys=True)
    digest = checkpoints._digest(text, tensors)
    save_file(tensors, file, {"state": text, "sha256": digest})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("learning_rate", 0.01),
        ("devices", 6),
        ("alpha", 0.5),
        ("seed", 3),
        ("noise_dbm", -45.0),
        ("test_samples", 60),
        ("batch_size", 8),
        ("evaluate_every", 2),
        ("method", '"vanilla-1.0x"'),
        ("engine", '"torch"'),
        ("optimiser_state", '"fresh"'),
        ("schedule", '"cosine"'),
    ],
)
def test_an_edited_setting_is_refused_by_name(stopped, key, value):
    edit(stopped, **{key: value})
    said = assert_refused(stopped, f"{key} was ", str(value).strip('"'))
    assert said.count(" was ") == (3 if key in ("noise_dbm", "schedule") else 2), said


def test_more_rounds_and_other_circumstances_are_allowed(stopped):
    longer = slimfl.run(**SETTINGS | {"rounds": 5})
    edit(stopped, rounds=5, checkpoint_every=2, convergence_window=3, wait_s=5.0, track="[]")
    resumed = slimfl.resume(stopped)
    np.testing.assert_array_equal(resumed.parameters, longer.parameters)
    assert [line["accuracy"] for line in resumed.lines] == [
        line["accuracy"] for line in longer.lines
    ]


def test_more_rounds_are_refused_where_the_learning_rate_follows_them(tmp_path):
    path = tmp_path / "cosine"
    slimfl.run(out=path, training__schedule="cosine", **SETTINGS | {"rounds": 2})
    edit(path, rounds=4)
    assert_refused(path, "rounds was 2 and is 4")


def test_a_checkpoint_of_another_seed_is_refused(stopped, tmp_path):
    slimfl.run(out=tmp_path / "other", seed=7, **SETTINGS | {"rounds": 2})
    shutil.rmtree(stopped / "checkpoints")
    shutil.copytree(tmp_path / "other" / "checkpoints", stopped / "checkpoints")
    assert_refused(stopped, "seed was 7 and is the default")


def test_a_checkpoint_from_before_it_said_what_it_was_made_with_is_accepted(stopped):
    whole = slimfl.run(**SETTINGS)
    for file in (stopped / "checkpoints").iterdir():
        rewrite(file, lambda state, tensors: state.pop("made_with"))
    np.testing.assert_array_equal(slimfl.resume(stopped).parameters, whole.parameters)


def change_state(**values):
    return lambda state, tensors: state.update(values)


def change_tensors(**values):
    def change(state, tensors):
        for name, value in values.items():
            key = name.replace("__", "/")
            if value is None:
                del tensors[key]
            else:
                tensors[key] = value(tensors.get(key))

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (change_tensors(**{"global": lambda old: old[:-1]}), "parameters"),
        (change_tensors(**{"global": lambda old: old.reshape(2, -1)}), "parameters"),
        (change_tensors(**{"global": lambda old: old.astype(np.float64)}), "parameters"),
        (change_tensors(**{"global": None}), "parameters"),
        (change_tensors(spare=lambda old: np.zeros(3, np.float32)), "spare"),
        (change_tensors(device__0__exp_avg=lambda old: old[:-1]), "device 0"),
        (change_tensors(device__0__exp_avg=lambda old: old.astype(np.int64)), "int64"),
        (change_tensors(device__0__step=None), "device 0"),
        (change_tensors(device__0__more=lambda old: np.zeros(3, np.float32)), "device 0"),
        (change_tensors(device__5__step=lambda old: np.zeros((), np.float32)), "device '5'"),
        (change_tensors(device__x__step=lambda old: np.zeros((), np.float32)), "device 'x'"),
        (
            change_tensors(**{f"device__{'9' * 5000}__step": lambda old: np.zeros((), np.float32)}),
            "there is no device",
        ),
        (change_state(made_with=[]), "made with"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_with_a_sentence(stopped, change, words):
    rewrite(stopped / "checkpoints" / "round-00000002.safetensors", change)
    assert_refused(stopped, "round 2", words)


@pytest.mark.parametrize("heard", [None, 5, [1], ["x"] * 5, [10**30] * 5, [-1] * 5])
def test_impossible_counts_of_privacy_are_refused(tmp_path, heard):
    path = tmp_path / "private"
    private = {"privacy__clip_norm": 1.0, "federation__average": "uniform"}
    slimfl.run(out=path, **SETTINGS | private | {"rounds": 2})
    edit(path, rounds=4)
    rewrite(path / "checkpoints" / "round-00000002.safetensors", change_state(heard=heard))
    assert_refused(path, "heard")


@pytest.mark.parametrize(
    "change",
    [
        change_state(round="two"),
        change_state(round=None),
        change_state(round=-1),
        change_state(round=7),
        change_state(device_files=[]),
        change_state(device_files={"../../elsewhere": "00"}),
        change_state(device_files={"devices-00000000.safetensors": "00"}),
        lambda state, tensors: state.pop("round"),
    ],
)
def test_a_state_that_says_nothing_is_a_damaged_one(stopped, change, caplog):
    whole = slimfl.run(**SETTINGS)
    rewrite(stopped / "checkpoints" / "round-00000002.safetensors", change)
    resumed = slimfl.resume(stopped)
    assert "round-00000002.safetensors is damaged" in caplog.text
    np.testing.assert_array_equal(resumed.parameters, whole.parameters)
