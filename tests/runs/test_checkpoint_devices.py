"""The states of many devices are written once each, and a kill at any moment loses nothing."""

import json
import shutil

import numpy as np
import pytest

import slimfl
from slimfl.engines import device_states
from slimfl.errors import RequestError
from slimfl.round import RunFolder
from slimfl.round.state import disk_bytes, space_warning, states_bytes
from slimfl.runs.storage import checkpoint as checkpoints
from tests import asking

SETTINGS = {
    "rounds": 8,
    "data__dataset": "synthetic",
    "data__train_samples": 600,
    "data__test_samples": 50,
    "data__partition": "iid",
    "training__steps": 1,
    "training__batch_size": 4,
    "threads": 1,
    "federation__devices": 12,
    "federation__participation": 0.25,
}


@pytest.fixture
def on_disk(monkeypatch):
    """As if three devices were too many to be in the checkpoint, and four too many for memory."""
    row = 4 * (2 * 4586 + 1)
    monkeypatch.setattr(device_states, "INLINE_BYTES", 2 * row)
    monkeypatch.setattr(device_states, "MEMORY_BYTES", 4 * row)
    monkeypatch.setattr(device_states, "SMALL_FILES", 3)


@pytest.fixture(scope="module")
def in_memory():
    return asking.run(**SETTINGS)


def lines(run):
    return [{k: v for k, v in line.items() if k != "seconds"} for line in run.lines]


def assert_same(run, other):
    assert lines(run) == lines(other)
    np.testing.assert_array_equal(run.parameters, other.parameters)


def states_of(folder):
    """All states in the newest checkpoint of a folder, read without the store."""
    checkpoint = RunFolder.open(folder).checkpoint()
    found = {k: v for k, v in checkpoint.tensors.items() if k != "global"}
    for file, (devices, _) in checkpoint.device_files:
        from safetensors.numpy import load_file

        tensors = load_file(file.path)
        for row, device in enumerate(devices.tolist()):
            for name in ("step", "exp_avg", "exp_avg_sq"):
                found[f"device/{device}/{name}"] = tensors[f"state/{name}"][row]
    return found


@pytest.mark.parametrize("engine", ["native", "torch"])
def test_where_the_states_are_changes_no_bit(on_disk, tmp_path, monkeypatch, engine):
    on_disk = asking.run(out=tmp_path / "files", engine=engine, **SETTINGS)
    monkeypatch.undo()
    inline = asking.run(out=tmp_path / "inline", engine=engine, **SETTINGS)
    assert_same(on_disk, inline)
    names = [path.name for path in sorted((tmp_path / "inline" / "checkpoints").iterdir())]
    assert names == ["round-00000007.safetensors", "round-00000008.safetensors"]
    assert list((tmp_path / "files" / "checkpoints").glob("devices-*"))
    left, right = states_of(tmp_path / "files"), states_of(tmp_path / "inline")
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)


def test_a_checkpoint_writes_the_devices_that_trained(on_disk, tmp_path, monkeypatch):
    monkeypatch.setattr(device_states, "SMALL_FILES", 100)
    written = []
    write = device_states.write_states
    monkeypatch.setattr(
        device_states, "write_states", lambda path, s: written.append(sorted(s)) or write(path, s)
    )
    run = asking.run(out=tmp_path / "run", **SETTINGS | {"rounds": 3})
    assert written == [line["devices"] for line in run.lines]


@pytest.mark.parametrize("participation", [0.25, 1.0])
def test_what_is_out_of_date_does_not_pile_up_on_the_disk(
    on_disk, tmp_path, monkeypatch, participation
):
    """Measured when most is there: a checkpoint is written, and the old ones still are."""
    sizes = []
    tidy = checkpoints._tidy

    def measured(folder, written):
        sizes.append(sum(file.stat().st_size for file in folder.glob("devices-*")))
        tidy(folder, written)

    monkeypatch.setattr(checkpoints, "_tidy", measured)
    run = asking.run(
        out=tmp_path / "run",
        **SETTINGS | {"rounds": 20, "federation__participation": participation},
    )
    everything = states_bytes(run.experiment, len(run.parameters))
    assert everything == 12 * 4 * (2 * 4586 + 1)
    headers = 40 * 400
    assert everything < max(sizes) <= disk_bytes(run.experiment, len(run.parameters)) + headers


def damage(path):
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)


def stopped_after(path, rounds):
    asking.run(out=path, **SETTINGS | {"rounds": rounds})
    edit_rounds(path, rounds, 8)
    return path


def edit_rounds(path, old, new):
    toml = path / "experiment.toml"
    text = toml.read_text()
    assert f"rounds = {old}\n" in text
    toml.write_text(text.replace(f"rounds = {old}\n", f"rounds = {new}\n"))


def files_of(path):
    """The files that each kept checkpoint names, newest first."""
    return [
        set(checkpoints._state(file)["device_files"])
        for file in checkpoints._newest_first(path / "checkpoints")
    ]


@pytest.mark.parametrize("how", ["flipped", "gone", "empty"])
def test_a_damaged_file_of_the_newest_checkpoint_gives_way_to_the_one_before(
    on_disk, in_memory, tmp_path, caplog, how
):
    path = stopped_after(tmp_path / "run", 3)
    newest, before = files_of(path)
    (name,) = newest - before
    file = path / "checkpoints" / name
    match how:
        case "flipped":
            damage(file)
        case "gone":
            file.unlink()
        case "empty":
            file.write_bytes(b"")
    assert RunFolder.open(path).checkpoint().round == 2
    assert_same(slimfl.resume(path), in_memory)
    assert "round-00000003.safetensors is damaged" in caplog.text


def test_both_checkpoints_are_whole_without_the_other(on_disk, in_memory, tmp_path):
    path = stopped_after(tmp_path / "run", 5)
    newest, before = files_of(path)
    on_the_disk = {file.name for file in (path / "checkpoints").glob("devices-*")}
    assert on_the_disk == newest | before, "and nothing else is kept"
    for keep, files in (("round-00000005", newest), ("round-00000004", before)):
        alone = shutil.copytree(path, tmp_path / keep)
        for file in (alone / "checkpoints").iterdir():
            if file.stem != keep and file.name not in files:
                file.unlink()
        assert_same(slimfl.resume(alone), in_memory)


def test_a_file_that_every_checkpoint_needs_is_damaged_and_the_run_starts_over(
    on_disk, in_memory, tmp_path
):
    path = stopped_after(tmp_path / "run", 3)
    for name in set.intersection(*files_of(path)):
        damage(path / "checkpoints" / name)
    assert_same(slimfl.resume(path), in_memory)


@pytest.mark.parametrize("files", [True, False])
def test_checkpoints_that_were_passed_over_do_not_push_out_new_ones(
    in_memory, tmp_path, monkeypatch, files
):
    """A run that starts over is killed again: it goes on from the rounds it did the second time."""
    if files:
        monkeypatch.setattr(device_states, "INLINE_BYTES", 0)
    path = stopped_after(tmp_path / "run", 7)
    for file in (path / "checkpoints").glob("round-*"):
        damage(file)
    edit_rounds(path, 8, 3)
    (path / "metrics.jsonl").write_bytes(b"")
    slimfl.resume(path)
    assert RunFolder.open(path).checkpoint().round == 3
    assert len(list((path / "checkpoints").glob("round-*"))) == 2
    edit_rounds(path, 3, 8)
    assert_same(slimfl.resume(path), in_memory)


def test_states_of_another_network_are_refused(on_disk, tmp_path):
    path = stopped_after(tmp_path / "run", 3)
    (name, *_) = sorted(files_of(path)[0])
    file = path / "checkpoints" / name
    digest = device_states.write_states(file, {3: {"step": np.zeros((), np.float32)}})
    for checkpoint in (path / "checkpoints").glob("round-*"):
        rewrite_digest(checkpoint, name, digest)
    with pytest.raises(RequestError, match="does not fit this run"):
        slimfl.resume(path)


def rewrite_digest(path, name, digest):
    from safetensors.numpy import load_file, save_file

    tensors, state = load_file(path), checkpoints._state(path)
    state["device_files"][name] = digest
    text = json.dumps(state, sort_keys=True)
    save_file(tensors, path, {"state": text, "sha256": checkpoints._digest(text, tensors)})


def test_a_checkpoint_that_holds_all_states_itself_goes_on_in_files(
    in_memory, tmp_path, monkeypatch
):
    """As one of a version that knew no files does."""
    path = stopped_after(tmp_path / "run", 3)
    assert not list((path / "checkpoints").glob("devices-*"))
    monkeypatch.setattr(device_states, "INLINE_BYTES", 0)
    assert_same(slimfl.resume(path), in_memory)
    assert list((path / "checkpoints").glob("devices-*"))


def test_the_space_is_said_before_the_run(tmp_path, caplog):
    many = asking.load(federation__devices=100_000, federation__participation=0.001)[0]
    assert states_bytes(many, 4586) == 3000 * 4 * (2 * 4586 + 1), "100 devices in 30 rounds"
    assert space_warning(many, 4586, tmp_path) is None
    long = many.model_copy(update={"rounds": 10_000})
    assert states_bytes(long, 4586) == 100_000 * 4 * (2 * 4586 + 1)
    words = space_warning(long, 4586, tmp_path / "checkpoints")
    assert "3.7 GB" in words
    assert "7.3 GB" in words, "half of it out of date"
    assert str(tmp_path) in words
    assert 'optimiser_state = "fresh"' in words
    fresh = long.training.model_copy(update={"optimiser_state": "fresh"})
    assert space_warning(long.model_copy(update={"training": fresh}), 4586, None) is None


@pytest.mark.parametrize(
    "training",
    [
        {"optimiser": "adam"},
        {"optimiser": "sgd"},
        {"optimiser": "sgd", "momentum": 0.0},
        {"optimiser_state": "fresh"},
    ],
)
@pytest.mark.parametrize("engine", ["native", "torch"])
def test_the_shapes_of_states_are_those_of_the_engines(training, engine):
    from slimfl.training import state_shapes

    values = {f"training__{key}": value for key, value in training.items()}
    experiment = asking.load(engine=engine, **SETTINGS | values)[0]
    sim = slimfl.round.Simulation(experiment)
    sim.step()
    found = {}
    for key, value in sim.engine.states.export().items():
        device, _, name = key.partition("/")
        found.setdefault(device, {})[name] = value.shape
    expected = state_shapes(experiment.training, len(sim.global_model))
    assert all(shapes == expected for shapes in found.values())
    assert bool(found) == bool(expected)
