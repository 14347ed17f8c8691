"""Cells: known by what changes their numbers, run once, resumed where they stopped."""

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

from slimfl import config
from slimfl.errors import RunError
from slimfl.experiments.cells import Cell, cell
from slimfl.experiments.exhibits import RECIPES
from slimfl.experiments.runner import complete, is_complete, run_cells
from slimfl.experiments.scale import SCALES

TINY = {
    "data__dataset": "synthetic",
    "data__train_samples": 200,
    "data__test_samples": 50,
    "rounds": 3,
    "training__steps": 2,
    "federation__devices": 3,
}


def tiny(**changes):
    return Cell(config.load(**(TINY | {"threads": 1} | changes))[0])


def numbers(folder):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").open()]
    for line in lines:
        del line["seconds"]
    newest = sorted((folder / "checkpoints").glob("*.safetensors"))[-1]
    return lines, load_file(newest)["global"]


def test_key_follows_the_numbers_and_not_the_circumstances():
    base = tiny()
    assert tiny(threads=2).key == base.key
    assert tiny(data__dir="/elsewhere").key == base.key
    assert tiny(track=("tensorboard",)).key == base.key
    others = [
        tiny(seed=1), tiny(rounds=4), tiny(method="vanilla-0.5x"), tiny(radio__noise_dbm=-45.0),
        tiny(training__weights=(0.3, 0.7)), tiny(data__alpha=0.1), tiny(engine="torch"),
    ]  # fmt: skip
    assert len({base.key, *(other.key for other in others)}) == len(others) + 1


@pytest.mark.parametrize("name", SCALES)
def test_exhibits_share_cells_and_names_tell_them_apart(name):
    scale = SCALES[name]
    asked = [c for recipe in RECIPES.values() for c in recipe.cells(scale)]
    distinct = set(asked)
    assert len(distinct) < len(asked)
    assert len({c.name for c in distinct}) == len(distinct)
    for c in distinct:
        assert c.experiment.rounds == scale.rounds[c.experiment.data.alpha]


def test_seeds_see_the_same_data_and_trace_in_every_method():
    scale = SCALES["smoke"]
    slim, vanilla = (
        cell(scale, method, alpha=0.1, seed=1) for method in ("slimfl", "vanilla-1.0x")
    )
    assert slim.experiment.model_copy(update={"method": "vanilla-1.0x"}) == vanilla.experiment


def test_local_work_of_a_round_does_not_depend_on_the_number_of_devices():
    scale = SCALES["small"]
    for devices in scale.device_counts:
        steps = cell(scale, alpha=1.0, seed=0, devices=devices).experiment.training.steps
        assert steps * devices == pytest.approx(10 * scale.steps, rel=0.1)


def test_parallel_is_serial(tmp_path):
    cells = [tiny(seed=seed, method=m) for seed in (0, 1) for m in ("slimfl", "vanilla-0.5x")]
    seen = []
    run_cells([*cells, cells[0]], tmp_path / "together", 2, lambda *told: seen.append(told))
    for each in cells:
        complete(each, tmp_path / "alone")
        together, alone = (numbers(each.folder(tmp_path / w)) for w in ("together", "alone"))
        assert together[0] == alone[0]
        np.testing.assert_array_equal(together[1], alone[1])
    done, total, finished, count = seen[-1]
    assert (finished, count) == (4, 4)
    assert done == total


def test_a_finished_cell_is_not_run_again(tmp_path):
    one = tiny()
    folder = complete(one, tmp_path)
    before = (folder / "metrics.jsonl").stat().st_mtime_ns
    run_cells([one], tmp_path, 2)
    assert (folder / "metrics.jsonl").stat().st_mtime_ns == before
    assert is_complete(one, tmp_path)
    assert not is_complete(tiny(rounds=4), tmp_path)


def test_a_failing_cell_is_named(tmp_path):
    broken = tiny(data__dataset=str(tmp_path / "nowhere"))
    with pytest.raises(Exception, match=broken.name):
        run_cells([broken], tmp_path, 1)


def test_a_damaged_worker_is_an_error_not_a_hang(tmp_path, monkeypatch):
    monkeypatch.setattr("slimfl.experiments.runner.complete", _die)
    with pytest.raises(RunError, match="process"):
        run_cells([tiny()], tmp_path, 1)


def _die(cell, cache):
    os._exit(3)


SCRIPT = """
import sys
from pathlib import Path
from slimfl import config
from slimfl.experiments.cells import Cell
from slimfl.experiments.runner import run_cells
if __name__ == "__main__":
    values = {values!r}
    cells = [Cell(config.load(**(values | {{"seed": seed}}))[0]) for seed in (0, 1)]
    run_cells(cells, Path(sys.argv[1]), 2)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_cells_go_on_to_the_same_numbers(tmp_path, how):
    values = TINY | {"threads": 1, "rounds": 40}
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(values=values))
    cells = [tiny(seed=seed, rounds=40) for seed in (0, 1)]
    process = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "cut")], start_new_session=True,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    metrics = [c.folder(tmp_path / "cut") / "metrics.jsonl" for c in cells]
    while time.monotonic() < deadline:
        if all(m.exists() and m.read_bytes().count(b"\n") >= 3 for m in metrics):
            break
        time.sleep(0.05)
    workers = _children(process.pid)
    assert len(workers) >= 2
    process.send_signal(how)
    process.wait(30)
    while any(map(_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(_alive, workers)), "a worker outlived its parent"
    run_cells(cells, tmp_path / "cut", 2)
    for each in cells:
        complete(each, tmp_path / "whole")
        cut, whole = (numbers(each.folder(tmp_path / w)) for w in ("cut", "whole"))
        assert cut[0] == whole[0]
        np.testing.assert_array_equal(cut[1], whole[1])


def _children(pid):
    listing = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True)
    return [int(word) for word in listing.stdout.split()]


def _alive(pid):
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True).stdout
    return bool(state.strip()) and not state.strip().startswith(b"Z")


def test_every_scale_says_what_it_shortens():
    for scale in SCALES.values():
        assert str(scale.seeds) in scale.shortened
    longer = replace(SCALES["small"], steps=77)
    assert "77" in longer.shortened
