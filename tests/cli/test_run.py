"""`slimfl run` and `slimfl resume`: grids, folders, two processes at once, interruptions."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

TINY = [Path(__file__).with_name("tiny.toml"), "--json"]


@pytest.fixture(autouse=True)
def quick_report(monkeypatch):
    """The report takes longer than these runs and is tested elsewhere."""
    monkeypatch.setattr("slimfl.cli.carrying_out.write_report", lambda records, path: path)


def numbers(folder):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").open()]
    for line in lines:
        del line["seconds"]
    newest = sorted((folder / "checkpoints").glob("*.safetensors"))[-1]
    return lines, load_file(newest)["global"]


def assert_same(folder, other):
    (lines, weights), (other_lines, other_weights) = numbers(folder), numbers(other)
    assert lines == other_lines
    np.testing.assert_array_equal(weights, other_weights)


AXES = {
    "data.train_samples": ("40", "100"),
    "data.test_samples": ("20", "30"),
    "data.normalise": ("standard", "plain"),
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["serial", "local", "resume"])
def test_every_point_of_a_grid_has_its_own_data(mode, here, tmp_path):
    together = tmp_path / "together"
    grid = [word for key in AXES for word in ("--set", f"{key}={','.join(AXES[key])}")]
    request = ["run", *TINY, *grid, "--out", together]
    status, _, error = here(*request, *(["--on", "local"] if mode == "local" else []))
    assert status == 0, error
    if mode == "resume":
        for folder in together.iterdir():
            shutil.rmtree(folder / "checkpoints")
        assert here("resume", together)[0] == 0
    for samples in AXES["data.train_samples"]:
        for tests in AXES["data.test_samples"]:
            for kind in AXES["data.normalise"]:
                point = [
                    f"data.train_samples={samples}",
                    f"data.test_samples={tests}",
                    f"data.normalise={kind}",
                ]
                alone = tmp_path / "-".join(point)
                options = [word for text in point for word in ("--set", text)]
                assert here("run", *TINY, *options, "--set", "threads=1", "--out", alone)[0] == 0
                name = "-".join(["slimfl", *point, "seed0"])
                assert_same(together / name, alone / "slimfl-seed0")
                counts = json.loads((together / name / "partition.json").read_text())
                assert sum(map(sum, counts["class_counts"])) == int(samples)


def test_two_datasets_in_one_grid(here, tmp_path):
    from slimfl.data import save, synthetic

    other = tmp_path / "other"
    other.mkdir()
    drawn = synthetic(seed=3)
    save(other, drawn.train, drawn.test)
    status, _, error = here("run", *TINY, "--set", f"data.dataset=synthetic,{other}", "--out", "g")
    assert status == 0, error
    assert here("run", *TINY, "--set", f"data.dataset={other}", "--out", "alone")[0] == 0
    ours = next(p for p in (tmp_path / "g").iterdir() if "synthetic" not in p.name)
    assert_same(ours, tmp_path / "alone/slimfl-seed0")
    assert here("run", *TINY, "--out", "plain")[0] == 0
    synthetic_run = tmp_path / "g/slimfl-data.dataset=synthetic-seed0"
    assert_same(synthetic_run, tmp_path / "plain/slimfl-seed0")


def test_grid_values_stay_below_out_and_apart(here, tmp_path):
    (tmp_path / "deep/er").mkdir(parents=True)
    from slimfl.data import save, synthetic

    places = ["../../set", "../../se/t", "../../se_t"]
    drawn = synthetic()
    for place in places:
        folder = tmp_path / "deep/er" / place
        folder.mkdir(parents=True)
        save(folder, drawn.train, drawn.test)
    os.chdir(tmp_path / "deep/er")
    values = ",".join(places)
    status, _, error = here("run", *TINY, "--set", f"data.dataset={values}", "--out", "g")
    assert status == 0, error
    runs = [p.parent for p in tmp_path.rglob("experiment.toml")]
    assert len(runs) == 3
    assert {p.parent for p in runs} == {tmp_path / "deep/er/g"}


def test_a_long_grid_value_is_a_short_folder(here, tmp_path):
    from slimfl.runs.sweeps import run_name

    names = {run_name(["slimfl", f"data.dataset={'x' * 300}{end}"]) for end in "ab"}
    assert len(names) == 2
    assert all(len(name) < 240 for name in names)
    assert run_name(["..", "/"]).startswith("_")


def test_a_run_folder_is_no_group(here, tmp_path):
    assert here("run", *TINY, "--out", "g")[0] == 0
    status, _, error = here("run", *TINY, "--out", "g/slimfl-seed0")
    assert status == 2
    assert "--out" in error


def test_folders_without_an_experiment_are_empty(here, tmp_path):
    (tmp_path / "g/slimfl-seed0").mkdir(parents=True)
    leftover = ".experiment.toml.0123456789abcdef.tmp"  # of a kill while it was written
    (tmp_path / "g/slimfl-seed0" / leftover).write_text("rou")
    status, _, error = here("resume", "g")
    assert status == 2
    assert "use `slimfl run`" in error
    assert here("run", *TINY, "--out", "g")[0] == 0
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_group_grows_by_other_runs_and_the_same_command_goes_on(here):
    assert here("run", *TINY, "--out", "g")[0] == 0
    before = Path("g/slimfl-seed0/metrics.jsonl").read_bytes()
    status, _, error = here("run", *TINY, "--seed", "0,1", "--out", "g")
    assert status == 0, error
    assert Path("g/slimfl-seed0/metrics.jsonl").read_bytes() == before
    status, _, error = here("run", *TINY, "--rounds", 7, "--out", "g")
    assert status == 2
    assert "another experiment" in error


def start(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-c", "from slimfl.cli import main; main()", *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        **options,
    )


@pytest.mark.slow
def test_of_two_runs_started_at_once_one_wins(tmp_path):
    group = tmp_path / "g"
    rates = ("0.1", "0.2")
    children = [
        start("run", *TINY, "--set", f"training.learning_rate={rate}", "--out", group)
        for rate in rates
    ]
    errors = [child.communicate(timeout=300)[1] for child in children]
    assert sorted(child.returncode for child in children) == [0, 2], errors
    winner = next(k for k, child in enumerate(children) if child.returncode == 0)
    assert errors[1 - winner].count("\n") == 1
    assert str(group) in errors[1 - winner]
    written = (group / "slimfl-seed0/experiment.toml").read_text()
    assert f"learning_rate = {rates[winner]}\n" in written


def test_a_group_in_use_refuses_others(here, tmp_path):
    from slimfl.runs.sweeps.job import new_group

    with new_group(tmp_path / "g"):
        for request in (("run", *TINY, "--out", "g"), ("resume", "g")):
            status, _, error = here(*request)
            assert status == 2
            assert "another process" in error
    assert here("run", *TINY, "--out", "g")[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("on", [None, "local"])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_says_how_to_resume(number, status, on, tmp_path):
    group = tmp_path / "my runs"
    request = ["run", *TINY, "--seed", "0,1", "--rounds", 2000, "--out", group]
    child = start(*request, *(["--on", on] if on else []), start_new_session=True)
    # any of the newest checkpoints: the one of a given round is soon deleted, and easily missed
    saved = group / "slimfl-seed0/checkpoints"
    deadline = time.monotonic() + 120
    while child.poll() is None and time.monotonic() < deadline:
        if any(path.stem >= "round-00000003" for path in saved.glob("round-*.safetensors")):
            break
        time.sleep(0.01)
    if on and number == signal.SIGINT:
        os.killpg(child.pid, number)  # as a terminal does
    else:
        child.send_signal(number)
    error = child.communicate(timeout=60)[1]
    assert child.returncode == status, error
    last = error.splitlines()[-1]
    assert last == (
        f"slimfl: interrupted; `slimfl resume '{group}'` continues after the last complete round"
    )
    assert "Traceback" not in error
    assert not list(group.rglob("*.tmp"))


def test_a_method_that_was_set_is_the_one_that_runs(here, tmp_path):
    status, out, error = here(
        "run", "--set", "method=vanilla-1.0x", "--rounds", 1, "--set", "data.dataset=synthetic",
        "--set", "training.steps=1", "--set", "threads=1", "--out", tmp_path / "x", "--json",
    )  # fmt: skip
    assert status == 0, error
    assert [run["method"] for run in json.loads(out)["runs"]] == ["vanilla-1.0x"]


def test_a_finished_group_gets_more_rounds(here, tmp_path):
    assert here("run", *TINY, "--seed", "0,1", "--out", "short")[0] == 0
    status, out, error = here("resume", "short", "--rounds", 3, "--json")
    assert status == 0, error
    assert [run["rounds_done"] for run in json.loads(out)["runs"]] == [3, 3]
    assert here("run", *TINY, "--rounds", 3, "--seed", "0,1", "--out", "whole")[0] == 0
    for name in ("slimfl-seed0", "slimfl-seed1"):
        assert_same(tmp_path / "short" / name, tmp_path / "whole" / name)


def test_a_group_in_which_one_run_cannot_have_the_rounds_stays_as_it_is(here, tmp_path):
    assert here("run", *TINY, "--rounds", 1, "--out", "g")[0] == 0
    assert here("run", *TINY, "--seed", 1, "--out", "g")[0] == 0
    status, _, error = here("resume", "g", "--rounds", 1)
    assert status == 2
    assert error.count("\n") == 1
    assert "slimfl-seed1 cannot have 1 rounds: it has already done 2" in error
    status, _, error = here("resume", "g", "--rounds", 0)
    assert status == 2
    assert error.count("\n") == 1
    texts = [(tmp_path / f"g/slimfl-seed{seed}/experiment.toml").read_text() for seed in (0, 1)]
    assert ["rounds = 1\n" in text for text in texts] == [True, False]
