"""A run resumes only from its own checkpoints and with its own settings."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import slimfl
from slimfl.errors import RequestError
from slimfl.experiment.naming import trusting
from slimfl.runs.storage import checkpoint as checkpoints
from tests import asking

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
    asking.run(out=path, **SETTINGS | {"rounds": 2})
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
        # the first: the server's own optimiser has keys of the same names further down
        text, count = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", text, count=1)
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
        ("distance_m", 120.0),
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
    assert said.count(" was ") == (3 if key == "schedule" else 2), said


def test_more_rounds_and_other_circumstances_are_allowed(stopped):
    longer = asking.run(**SETTINGS | {"rounds": 5})
    edit(stopped, rounds=5, checkpoint_every=2, convergence_window=3, wait_s=5.0, track="[]")
    resumed = slimfl.resume(stopped)
    np.testing.assert_array_equal(resumed.parameters, longer.parameters)
    assert [line["accuracy"] for line in resumed.lines] == [
        line["accuracy"] for line in longer.lines
    ]


def test_more_rounds_are_refused_where_the_learning_rate_follows_them(tmp_path):
    path = tmp_path / "cosine"
    asking.run(out=path, training__schedule="cosine", **SETTINGS | {"rounds": 2})
    edit(path, rounds=4)
    assert_refused(path, "rounds was 2 and is 4")


def test_a_checkpoint_of_another_seed_is_refused(stopped, tmp_path):
    asking.run(out=tmp_path / "other", seed=7, **SETTINGS | {"rounds": 2})
    shutil.rmtree(stopped / "checkpoints")
    shutil.copytree(tmp_path / "other" / "checkpoints", stopped / "checkpoints")
    shutil.copy(tmp_path / "other" / "metrics.jsonl", stopped)
    assert_refused(stopped, "seed was 7 and is the default")


def test_a_checkpoint_from_before_it_said_what_it_was_made_with_is_accepted(stopped):
    whole = asking.run(**SETTINGS)
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
    ("change"),
    [
        change_tensors(**{"global": lambda old: old[:-1]}),
        change_tensors(**{"global": lambda old: old.reshape(2, -1)}),
        change_tensors(**{"global": lambda old: old.astype(np.float64)}),
        change_tensors(**{"global": None}),
        change_tensors(spare=lambda old: np.zeros(3, np.float32)),
        change_tensors(device__0__exp_avg=lambda old: old[:-1]),
        change_tensors(device__0__exp_avg=lambda old: old.astype(np.int64)),
        change_tensors(device__0__step=None),
        change_tensors(device__0__more=lambda old: np.zeros(3, np.float32)),
        change_tensors(device__5__step=lambda old: np.zeros((), np.float32)),
        change_tensors(device__x__step=lambda old: np.zeros((), np.float32)),
        change_tensors(**{f"device__{'9' * 5000}__step": lambda old: np.zeros((), np.float32)}),
        change_state(made_with=[]),
    ],
)
def test_arrays_that_do_not_fit_are_refused_with_a_sentence(stopped, change):
    rewrite(stopped / "checkpoints" / "round-00000002.safetensors", change)
    assert_refused(stopped, "round 2", "does not fit this run")


@pytest.mark.parametrize("heard", [None, 5, [1], ["x"] * 5, [10**30] * 5])
def test_impossible_counts_of_privacy_are_refused(tmp_path, heard):
    path = tmp_path / "private"
    private = {"privacy__clip_norm": 1.0, "federation__average": "uniform"}
    asking.run(out=path, **SETTINGS | private | {"rounds": 2})
    edit(path, rounds=4)
    rewrite(path / "checkpoints" / "round-00000002.safetensors", change_state(heard=heard))
    assert_refused(path, "does not fit this run")


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
    whole = asking.run(**SETTINGS)
    rewrite(stopped / "checkpoints" / "round-00000002.safetensors", change)
    resumed = slimfl.resume(stopped)
    assert "round-00000002.safetensors is damaged" in caplog.text
    np.testing.assert_array_equal(resumed.parameters, whole.parameters)


HOWTO = Path(__file__).parents[2] / "docs/howto"


@pytest.fixture
def with_memory(tmp_path, monkeypatch):
    """A stopped run whose method and channel keep something."""
    monkeypatch.syspath_prepend(str(HOWTO))
    named = {
        "method": "mylab.momentum:CappedMomentum",
        "radio__model": "mylab.drifting:DriftingFading",
    }
    with trusting(["mylab"]):
        asking.run(out=tmp_path / "run", **SETTINGS | named | {"rounds": 2})
        edit(tmp_path / "run", rounds=4)
        yield tmp_path / "run"


def set_to(name, value):
    def change(state, tensors):
        tensors[name] = value(tensors.get(name))

    return change


def without(name):
    return lambda state, tensors: tensors.pop(name)


MISFITS = {
    "no velocity": without("method/velocity"),
    "no fading": without("channel/fading"),
    "a shorter velocity": set_to("method/velocity", lambda v: v[:-1]),
    "another shape of the same size": set_to("channel/fading", lambda v: v.reshape(5, 2)),
    "more than the method keeps": set_to("method/more", lambda v: np.zeros(3)),
    "more than the channel keeps": set_to("channel/more", lambda v: np.zeros(3)),
    "a part that there is not": set_to("server/velocity", lambda v: np.zeros(3)),
    "complex numbers": set_to("channel/fading", lambda v: v.astype(np.complex64)),
}


@pytest.mark.parametrize("misfit", MISFITS)
def test_memory_of_other_names_or_shapes_is_refused(with_memory, misfit):
    for file in (with_memory / "checkpoints").glob("round-*.safetensors"):
        rewrite(file, MISFITS[misfit])
    assert_refused(with_memory, "does not fit this run")


def test_memory_where_there_should_be_none_is_refused(stopped):
    for file in (stopped / "checkpoints").glob("round-*.safetensors"):
        rewrite(file, set_to("method/velocity", lambda v: np.zeros(3)))
    assert_refused(stopped, "arrays of the method")


def test_memory_that_fits_is_used(with_memory):
    """The run goes on, and with what the checkpoint holds: another velocity, another model."""
    copy = shutil.copytree(with_memory, with_memory.parent / "copy")
    for file in (copy / "checkpoints").glob("round-*.safetensors"):
        rewrite(file, set_to("method/velocity", lambda v: v + 1))
    ours, theirs = (slimfl.resume(path).parameters for path in (with_memory, copy))
    assert (ours != theirs).any()


@pytest.mark.parametrize(
    ("key", "value"),
    [("method_options", "{ momentum = 0.5 }"), ("options", "{ correlation = 0.5 }")],
)
def test_options_of_own_parts_are_settings_like_others(with_memory, key, value):
    file = with_memory / "experiment.toml"
    text = file.read_text()
    section = "" if key == "method_options" else "[radio]\n"
    text = re.sub(rf"(?m)^\[{'radio.options' if section else key}\]\n(.+\n)*", "", text)
    assert section in text
    entry = f"{key} = {value}\n"
    file.write_text(text.replace(section, section + entry, 1) if section else entry + text)
    names = "momentum" if not section else "0.5"
    assert_refused(with_memory, "made with settings that differ", names)


def test_checkpoints_with_the_same_contents_are_the_same_file(tmp_path):
    tensors = {"global": np.arange(5, dtype=np.float32), "batch/a": np.ones(3, np.float32)}
    written = []
    for number in range(12):  # the library orders the metadata anew in every file
        folder = tmp_path / str(number)
        checkpoints.write(folder, checkpoints.Checkpoint(7, tensors, {"clock_s": 1.5, "a": "ä"}))
        written.append(checkpoints.file_of(folder, 7).read_bytes())
    assert len({*written}) == 1
    found = checkpoints.newest(folder)
    assert found.state["a"] == "ä"
    assert {name: value.tolist() for name, value in found.tensors.items()} == {
        name: value.tolist() for name, value in tensors.items()
    }
