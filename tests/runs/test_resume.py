"""A run that was killed, damaged or out of disk space resumes to the same bits."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

import slimfl
from slimfl.data import synthetic
from slimfl.engines import device_states
from slimfl.errors import RequestError, RunError
from slimfl.experiment.naming import trusting
from slimfl.round import RunFolder, Simulation, completed, run
from slimfl.runs.storage import checkpoint as checkpoints
from tests import asking
from tests.killed_runs import HOWTO, edit, rewrite

ROUNDS, DONE = 6, 4
SETTINGS = {
    "rounds": ROUNDS, "threads": 1, "training__steps": 1, "federation__devices": 5,
    "federation__participation": 0.7, "data__dataset": "synthetic", "data__train_samples": 300,
    "data__test_samples": 50, "data__partition": "iid",
}  # fmt: skip

#: What a run keeps from round to round.
MODES = {
    "optimisers of the devices": {},
    "torch": {"engine": "torch"},
    "three widths": {"model__widths": (0.25, 0.5, 1.0)},
    "few checkpoints": {"federation__checkpoint_every": 3},
    "states in files": {},
    "asynchronous": {
        "time__mode": "asynchronous", "time__concurrency": 3, "time__buffer": 2,
        "time__buffer_counts": "arrivals", "federation__dropout": 0.1,
    },
    "asynchronous with an average": {
        "time__mode": "asynchronous", "federation__average_last": 2, "federation__absent": "old",
        "radio__model": "rate-adaptive", "data__partition": "dirichlet",
    },
    "private": {
        "privacy__clip_norm": 0.5, "privacy__noise_multiplier": 1.2, "privacy__noise": "seeded",
    },
    "last segments": {"federation__absent": "stale", "radio__noise_dbm": -36.0},
    "average of models": {"federation__average_last": 3},
    "optimiser of the server": {"server__optimiser": "adam"},
    "learned split": {"radio__split": "learned", "population__preset": "cell"},
    "learned split by its bound": {
        "radio__split": "learned", "radio__split_objective": "bound", "population__preset": "cell",
    },
    "own model": {
        "radio__downlink": "lossy", "radio__downlink_power_dbm": 14.0,
        "radio__downlink_missed": "own-model",
    },
    "own model in files": {
        "radio__downlink": "lossy", "radio__downlink_power_dbm": 14.0,
        "radio__downlink_missed": "own-model",
    },
    "batteries": {"population__preset": "sensors"},
    "fading with a memory": {"radio__fading_process": "ar1", "radio__fading_correlation": 0.9},
    "devices that walk": {
        "radio__speed_m_s": 20.0, "radio__shadowing_db": 4.0, "radio__shadowing_correlation": 0.5,
    },
    "own method and channel": {
        "method": "mylab.momentum:CappedMomentum", "radio__model": "mylab.drifting:DriftingFading",
    },
}  # fmt: skip


def tear(path):
    with (path / "metrics.jsonl").open("a") as file:
        file.write('{"round": 5, "accur')


def newest(path):
    return sorted((path / "checkpoints").glob("round-*"))[-1]


def flip(file):
    raw = bytearray(file.read_bytes())
    raw[-100] ^= 1
    file.write_bytes(raw)


def lines_changed(change):
    def damage(path):
        file = path / "metrics.jsonl"
        lines = change(file.read_bytes().splitlines())
        file.write_bytes(b"".join(line + b"\n" for line in lines))

    return damage


#: What a kill leaves behind.
KILLS = {
    "after a checkpoint": lambda path: None,
    "in the middle of a line": tear,
    "between a line and its checkpoint": lambda path: newest(path).unlink(),
    "before any checkpoint": lambda path: shutil.rmtree(path / "checkpoints"),
}

#: What a bad disk, or a hand, leaves behind.
DAMAGES = {
    "a checkpoint with a wrong bit": lambda path: flip(newest(path)),
    "half a checkpoint": lambda path: os.truncate(newest(path), newest(path).stat().st_size // 2),
    "an empty checkpoint": lambda path: newest(path).write_bytes(b""),
    "no metrics": lambda path: (path / "metrics.jsonl").unlink(),
    "no lines": lines_changed(lambda lines: []),
    "a damaged line": lines_changed(lambda lines: [*lines[:2], b'{"round": 3, "a', *lines[3:]]),
    "a line that is no object": lines_changed(lambda lines: [*lines[:3], b"4"]),
    "the last line missing": lines_changed(lambda lines: lines[:-1]),
    "an early line missing": lines_changed(lambda lines: [lines[0], *lines[2:]]),
    "a line doubled": lines_changed(lambda lines: [*lines, lines[-1]]),
    "a round of another number": lines_changed(
        lambda lines: [*lines[:3], lines[3].replace(b'"round": 4', b'"round": 7')]
    ),
}


@pytest.fixture
def mode(request, monkeypatch):
    monkeypatch.syspath_prepend(str(HOWTO))
    if request.param.endswith("in files"):
        monkeypatch.setattr(device_states, "INLINE_BYTES", 0)
        monkeypatch.setattr(device_states, "MEMORY_BYTES", 100_000)
    with trusting(["mylab"]):
        yield request.param


@cache
def stopped(mode):
    """(records and arrays of a run that nobody stopped, the folder of one after four rounds)."""
    experiment = asking.load(**SETTINGS | MODES[mode])[0]
    whole = Simulation(experiment)
    records = [whole.step() for _ in range(ROUNDS)]
    scratch = TemporaryDirectory()
    first = Simulation(experiment)
    folder = RunFolder.create(
        Path(scratch.name) / "run", first.experiment, first.setting.provenance()
    )
    run(first, folder, until=DONE)
    return records, whole.state.checkpoint().tensors, folder.path, scratch


def told(lines):
    return [{**line.as_json(), "seconds": None} for line in lines]


def assert_resumes(mode, path):
    records, tensors, *_ = stopped(mode)
    slimfl.resume(path)
    assert told(RunFolder.open(path).metrics()) == told(records)
    found = RunFolder.open(path).checkpoint().tensors
    for name, value in tensors.items():
        if name in found or not name.startswith("device/"):  # those may be in files
            np.testing.assert_array_equal(found[name], value, err_msg=name)
    assert not list(path.rglob("*.tmp"))
    assert 1 <= len(list((path / "checkpoints").glob("round-*"))) <= 2


def left_by(damage, mode, tmp_path):
    path = shutil.copytree(stopped(mode)[2], tmp_path / "run")
    damage(path)
    return path


@pytest.mark.parametrize("mode", MODES, indirect=True)
@pytest.mark.parametrize("kill", KILLS)
def test_every_kind_of_run_goes_on_after_every_kind_of_kill(mode, kill, tmp_path):
    assert_resumes(mode, left_by(KILLS[kill], mode, tmp_path))


@pytest.mark.parametrize("mode", ["optimisers of the devices"], indirect=True)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_folder_goes_back_to_where_lines_and_checkpoint_agree(
    mode, damage, tmp_path, caplog
):
    assert_resumes(mode, left_by(DAMAGES[damage], mode, tmp_path))
    assert re.search("starts over|continues after round|is damaged", caplog.text)


@pytest.fixture
def plain(tmp_path, monkeypatch):
    """The folder of an ordinary run after four of six rounds."""
    return left_by(KILLS["after a checkpoint"], "optimisers of the devices", tmp_path)


@pytest.fixture
def command(monkeypatch):
    """Run the command in this process; returns its status."""
    from slimfl.cli import main

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["slimfl", *map(str, arguments)])
        try:
            main()
        except SystemExit as ended:
            return ended.code or 0
        return 0

    return call


def test_a_second_kill_after_starting_over_finds_no_checkpoint_of_the_first(plain):
    (plain / "metrics.jsonl").write_bytes(b"")
    folder = RunFolder.open(plain)
    run(Simulation(folder.experiment()), folder, until=3)
    names = sorted(file.stem for file in (plain / "checkpoints").iterdir())
    assert names == ["round-00000002", "round-00000003"]
    assert_resumes("optimisers of the devices", plain)


def test_a_finished_run_is_left_alone_and_its_last_checkpoint_made_again(plain):
    slimfl.resume(plain)
    folder, before = RunFolder.open(plain), (plain / "metrics.jsonl").read_bytes()
    slimfl.resume(plain)
    assert (plain / "metrics.jsonl").read_bytes() == before
    names = sorted(file.name for file in (plain / "checkpoints").iterdir())
    assert names == ["round-00000005.safetensors", "round-00000006.safetensors"], "no pickle"
    for damage in (flip, Path.unlink):
        damage(newest(plain))
        assert not completed(folder, folder.experiment(), verify=True)
        assert_resumes("optimisers of the devices", plain)
        assert completed(folder, folder.experiment(), verify=True)


@pytest.mark.slow
def test_a_process_of_a_sweep_makes_the_last_checkpoint_again(plain, command):
    slimfl.resume(plain)
    flip(newest(plain))
    assert command("resume", plain, "--json", "--on", "local") == 0
    assert_resumes("optimisers of the devices", plain)


def test_the_advice_of_the_error_works(plain, command, capsys):
    path = shutil.move(plain, plain.parent / "with space")
    DAMAGES["a damaged line"](path)
    assert command("report", path, "--out", path.parent / "r.html") == 2
    error = capsys.readouterr().err
    assert "line 3" in error
    advice = shlex.split(error.split("`")[1])
    assert advice[:2] == ["slimfl", "resume"]
    assert command(*advice[1:], "--json") == 0
    assert_resumes("optimisers of the devices", path)


# what is refused


def test_one_process_writes_at_a_time_and_a_folder_is_made_once(plain):
    with RunFolder.open(plain).writing(), pytest.raises(RequestError, match="another process"):
        slimfl.resume(plain)
    with pytest.raises(RequestError, match="slimfl resume"):
        asking.run(out=plain, **SETTINGS)
    with pytest.raises(RequestError, match="checksum"):
        slimfl.resume(plain, dataset=synthetic(seed=1))


def test_of_many_that_make_one_folder_one_wins(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    experiments = [asking.load(seed=seed)[0] for seed in range(8)]

    def make(experiment):
        try:
            RunFolder.create(tmp_path / "run", experiment, {"data_sha256": "0"})
        except RequestError:
            return None
        return experiment.seed

    with ThreadPoolExecutor(8) as pool:
        won = [seed for seed in pool.map(make, experiments) if seed is not None]
    assert len(won) == 1
    assert RunFolder.open(tmp_path / "run").experiment().seed == won[0]


def assert_refused(path, *words):
    before = {p: p.read_bytes() for p in path.rglob("*") if p.is_file() and p.name != ".lock"}
    with pytest.raises(RequestError) as error:
        slimfl.resume(path)
    for word in words:
        assert word in str(error.value)
    assert "\n" not in str(error.value)
    for file, contents in before.items():
        assert file.read_bytes() == contents, "nothing is lost"


@pytest.mark.parametrize(
    ("key", "value"),
    [("learning_rate", 0.01), ("seed", 3), ("distance_m", 120.0), ("method", '"vanilla-1.0x"'),
     ("schedule", '"cosine"')],
)  # fmt: skip
def test_an_edited_setting_is_refused_by_name(plain, key, value):
    edit(plain, **{key: value})
    assert_refused(plain, f"{key} was ", str(value).strip('"'))


def test_more_rounds_and_other_circumstances_are_allowed(plain):
    edit(plain, rounds=7, checkpoint_every=2, convergence_window=3, wait_s=5.0, track="[]")
    longer = asking.run(**SETTINGS | {"rounds": 7})
    np.testing.assert_array_equal(slimfl.resume(plain).parameters, longer.parameters)


@pytest.mark.parametrize("mode", ["own method and channel"], indirect=True)
def test_options_of_own_parts_are_settings_like_others(mode, tmp_path):
    path = left_by(KILLS["after a checkpoint"], mode, tmp_path)
    file = path / "experiment.toml"
    text = re.sub(r"(?m)^\[method_options\]\n(.+\n)*", "", file.read_text())
    file.write_text("method_options = { momentum = 0.5 }\n" + text)
    assert_refused(path, "made with settings that differ", "momentum")


def without(name):
    return lambda state, tensors: tensors.pop(name)


def set_to(name, value):
    def change(state, tensors):
        tensors[name] = value(tensors.get(name))

    return change


MISFITS = {
    "a shorter model": set_to("global", lambda old: old[:-1]),
    "another precision": set_to("global", lambda old: old.astype(np.float64)),
    "no model": without("global"),
    "a shorter moment": set_to("device/0/exp_avg", lambda old: old[:-1]),
    "whole moments": set_to("device/0/exp_avg", lambda old: old.astype(np.int64)),
    "no such device": set_to("device/5/step", lambda old: np.zeros((), np.float32)),
    "no number of a device": set_to("device/x/step", lambda old: np.zeros((), np.float32)),
    "no velocity": without("method/velocity"),
    "another shape of the same size": set_to("channel/fading", lambda old: old.reshape(5, 2)),
    "more than the method keeps": set_to("method/more", lambda old: np.zeros(3)),
    "a part that there is not": set_to("spare/velocity", lambda old: np.zeros(3)),
}


@pytest.mark.parametrize("mode", ["own method and channel"], indirect=True)
@pytest.mark.parametrize("misfit", MISFITS)
def test_arrays_that_do_not_fit_are_refused_with_a_sentence(mode, misfit, tmp_path):
    path = left_by(KILLS["after a checkpoint"], mode, tmp_path)
    for file in (path / "checkpoints").glob("round-*"):
        rewrite(file, MISFITS[misfit])
    assert_refused(path, "does not fit this run")


@pytest.mark.parametrize("mode", ["own method and channel"], indirect=True)
def test_memory_that_fits_is_used(mode, tmp_path):
    """The run goes on, and with what the checkpoint holds: another velocity, another model."""
    path = left_by(KILLS["after a checkpoint"], mode, tmp_path)
    for file in (path / "checkpoints").glob("round-*"):
        rewrite(file, set_to("method/velocity", lambda old: old + 1))
    assert (slimfl.resume(path).parameters != stopped(mode)[1]["global"]).any()


@pytest.mark.parametrize(
    "changed", [{"round": "two"}, {"round": 7}, {"device_files": {"../../elsewhere": "00"}}]
)
def test_a_state_that_says_nothing_is_a_damaged_one(plain, changed, caplog):
    rewrite(newest(plain), lambda state, tensors: state.update(changed))
    assert_resumes("optimisers of the devices", plain)
    assert "is damaged" in caplog.text


def test_a_checkpoint_from_before_it_said_what_it_was_made_with_is_accepted(plain):
    for file in (plain / "checkpoints").iterdir():
        rewrite(file, lambda state, tensors: state.pop("made_with"))
    assert_resumes("optimisers of the devices", plain)


def test_checkpoints_with_the_same_contents_are_the_same_file(tmp_path):
    tensors = {"global": np.arange(5, dtype=np.float32), "batch/a": np.ones(3, np.float32)}
    written = []
    for number in range(12):  # the library orders the metadata anew in every file
        folder = tmp_path / str(number)
        checkpoints.write(folder, checkpoints.Checkpoint(7, tensors, {"clock_s": 1.5, "a": "ä"}))
        written.append(checkpoints.file_of(folder, 7).read_bytes())
    assert len({*written}) == 1
    assert checkpoints.newest(folder).state["a"] == "ä"


# a full disk


def test_a_write_error_in_the_middle_of_a_line_leaves_whole_lines(plain, monkeypatch):
    import errno

    write = os.write

    def short(descriptor, raw):
        if raw.startswith(b'{"round": 5'):
            write(descriptor, raw[:20])
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, raw)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", short)
        with pytest.raises(RunError, match="disk is full"):
            slimfl.resume(plain)
    assert len((plain / "metrics.jsonl").read_text().splitlines()) == DONE


@pytest.mark.slow
@pytest.mark.parametrize("limit_kb", [3, 40])
def test_a_full_disk_ends_with_one_sentence_and_an_intact_folder(tmp_path, limit_kb):
    """A limit on file size makes the kernel refuse writes in the middle of a file, as a full disk
    does: 3 kB stops a line of metrics, 40 kB a checkpoint."""
    path, mode = tmp_path / "full", "few checkpoints" if limit_kb == 3 else "average of models"
    settings = asking.nested(SETTINGS | MODES[mode])
    script = textwrap.dedent(
        f"""
        import resource, sys, torch, slimfl
        from slimfl.errors import RunError
        torch.set_num_threads(1)
        resource.setrlimit(resource.RLIMIT_FSIZE, ({limit_kb} * 1024,) * 2)
        try:
            slimfl.Experiment(**{settings!r}).run(sys.argv[1])
        except RunError as error:
            print(error)
            sys.exit(1)
        """
    )
    child = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=120
    )
    assert child.returncode == 1, child.stderr
    assert "disk is full" in child.stdout
    assert child.stdout.count("\n") == 1
    raw = (path / "metrics.jsonl").read_bytes()
    assert raw == b"" or raw.endswith(b"\n")
    assert not list(path.rglob("*.tmp"))
    assert [json.loads(line)["round"] for line in raw.splitlines()] == list(
        range(1, raw.count(b"\n") + 1)
    )
    assert_resumes(mode, path)
