"""Jobs: run once, with the same results in parallel as alone, and resumed where they stopped."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file

from slimfl.errors import RequestError, RunError
from slimfl.runs.sweeps import Job, complete, is_complete, run_jobs
from tests import asking

TINY = {
    "data__dataset": "synthetic",
    "data__train_samples": 200,
    "data__test_samples": 50,
    "rounds": 3,
    "threads": 1,
    "training__steps": 2,
    "federation__devices": 3,
}


def job(folder, **changes):
    experiment = asking.load(**(TINY | changes))[0]
    return Job(folder / f"{experiment.method}-seed{experiment.seed}", experiment)


def jobs(folder, **changes):
    """Two methods under two seeds."""
    methods = ("slimfl", "vanilla-0.5x")
    return [job(folder, seed=seed, method=m, **changes) for seed in (0, 1) for m in methods]


def numbers(folder):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").open()]
    for line in lines:
        del line["seconds"]
    newest = sorted((folder / "checkpoints").glob("*.safetensors"))[-1]
    return lines, load_file(newest)["global"]


def assert_same(first, second):
    for one, other in zip(first, second, strict=True):
        (lines, weights), (other_lines, other_weights) = map(numbers, (one.folder, other.folder))
        assert lines == other_lines
        np.testing.assert_array_equal(weights, other_weights)


WHERE = ["local", pytest.param("ray", marks=pytest.mark.slow)]


@pytest.mark.slow
@pytest.mark.parametrize("on", WHERE)
def test_side_by_side_is_alone(tmp_path, on):
    if on == "ray" and not importlib.util.find_spec("ray"):
        pytest.skip("Ray is not installed")
    together, alone = jobs(tmp_path / "together"), jobs(tmp_path / "alone")
    told = []
    run_jobs([*together, together[0]], on, workers=2, watch=lambda *words: told.append(words))
    for each in alone:
        complete(each)
    assert_same(together, alone)
    done, total, finished, count = told[-1]
    assert (finished, count) == (4, 4)
    assert done == total


@pytest.mark.slow
def test_ray_goes_on_with_what_is_there_and_survives_a_lost_worker(tmp_path, monkeypatch):
    pytest.importorskip("ray")
    begun, alone = job(tmp_path / "begun"), job(tmp_path / "alone")
    # a worker that dies at its first attempt: the marker outlives it
    monkeypatch.setattr("slimfl.runs.sweeps.on_ray._work", _dies_once(str(tmp_path / "died")))
    run_jobs([begun], "ray")
    assert (tmp_path / "died").exists()
    complete(alone)
    assert_same([begun], [alone])
    assert is_complete(begun)


def _dies_once(marker):
    def work(*task):
        import os
        from pathlib import Path

        from slimfl.runs.sweeps import on_ray

        if not Path(marker).exists():
            Path(marker).touch()
            os._exit(1)
        return on_ray._work(*task)

    return work


@pytest.mark.slow
def test_a_job_stops_at_its_round_and_goes_on_later_as_if_it_had_not(tmp_path):
    whole, parts = job(tmp_path / "whole"), job(tmp_path / "parts")
    complete(whole)
    told = []
    run_jobs([replace(parts, until=2)], workers=1, watch=lambda *words: told.append(words))
    assert parts.rounds_done == 2
    assert told[-1][0] == told[-1][1]
    assert is_complete(replace(parts, until=2))
    assert not is_complete(parts)
    complete(parts)
    assert_same([whole], [parts])
    complete(replace(parts, until=2))  # nothing is cut off
    assert parts.rounds_done == 3


def test_a_job_may_go_on_beyond_what_its_experiment_asked_for(tmp_path):
    whole, short = job(tmp_path / "whole", rounds=5), job(tmp_path / "short")
    complete(whole)
    complete(short)
    with pytest.raises(RequestError, match="another experiment"):
        complete(replace(short, experiment=whole.experiment))
    complete(replace(short, experiment=whole.experiment, until=5))
    assert_same([whole], [short])


def test_a_finished_job_is_not_run_again(tmp_path):
    one = job(tmp_path)
    complete(one)
    before = (one.folder / "metrics.jsonl").stat().st_mtime_ns
    run_jobs([one], workers=2)
    assert (one.folder / "metrics.jsonl").stat().st_mtime_ns == before
    assert is_complete(one)


def test_a_failing_job_is_named(tmp_path):
    broken = job(tmp_path, data__dataset=str(tmp_path / "nowhere"))
    with pytest.raises(RequestError, match=broken.name):
        run_jobs([broken], workers=1)


def test_a_place_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(RequestError, match="ray://HOST:PORT"):
        run_jobs([job(tmp_path)], "mars")


def test_a_ray_inside_a_ray_is_refused(tmp_path):
    pytest.importorskip("ray")
    with pytest.raises(RequestError, match="--on local"):
        run_jobs([job(tmp_path, engine="flower")], "ray")


def test_a_lost_process_is_an_error_not_a_hang(tmp_path, monkeypatch):
    monkeypatch.setattr("slimfl.runs.sweeps.local.complete", _die)
    with pytest.raises(RunError, match="process"):
        run_jobs([job(tmp_path)], workers=1)


def _die(job):
    os._exit(3)


SCRIPT = """
import sys
from pathlib import Path
from slimfl import experiment as config
from slimfl.runs.sweeps import Job, run_jobs
if __name__ == "__main__":
    jobs = [
        Job(Path(sys.argv[1]) / f"slimfl-seed{{seed}}", config.build({values!r} | {{"seed": seed}}))
        for seed in (0, 1)
    ]
    run_jobs(jobs, workers=2)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_jobs_go_on_to_the_same_numbers(tmp_path, how):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(values=asking.nested(TINY | {"rounds": 40})))
    cut, whole = (
        [job(tmp_path / name, seed=seed, rounds=40) for seed in (0, 1)] for name in ("cut", "whole")
    )
    process = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "cut")],
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while not all(one.rounds_done >= 3 for one in cut) and time.monotonic() < deadline:
        time.sleep(0.05)
    workers = _children(process.pid)
    assert len(workers) >= 2
    process.send_signal(how)
    process.wait(30)
    while any(map(_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(_alive, workers)), "a worker outlived its parent"
    run_jobs(cut, workers=2)
    for each in whole:
        complete(each)
    assert_same(cut, whole)


def _children(pid):
    listing = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True)
    return [int(word) for word in listing.stdout.split()]


def _alive(pid):
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True).stdout
    return bool(state.strip()) and not state.strip().startswith(b"Z")


def test_a_folder_of_another_experiment_is_refused(tmp_path):
    made = job(tmp_path, rounds=1)
    complete(made)
    for change in ({"training__learning_rate": 0.5}, {"rounds": 5}):
        other = Job(made.folder, job(tmp_path, **({"rounds": 1} | change)).experiment)
        for asked in (is_complete, complete):
            with pytest.raises(RequestError, match="another experiment"):
                asked(other)
    moved = made.experiment.model_copy(update={"threads": 2, "engine": "torch"})
    assert is_complete(Job(made.folder, moved))
