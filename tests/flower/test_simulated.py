"""`slimfl run --engine flower` on Flower's simulation engine: bit for bit as other engines."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests import asking

#: SlimFL, S = 2, three devices, three rounds, the poor channel, one thread.
EXPERIMENT = """
method = "slimfl"
rounds = 3
threads = 1
[data]
dataset = "synthetic"
[training]
steps = 3
batch_size = 64
[federation]
devices = 3
[radio]
channel = "poor"
[flower]
device_engine = "torch"
round_timeout_s = 240.0
wait_s = 240.0
"""


#: A proxy that is not there: whoever tries to reach the internet fails.
NO_WAY_OUT = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}


def command(*arguments, **more):
    return subprocess.run(
        [sys.executable, "-c", "from slimfl.cli import main; main()", *map(str, arguments)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        **more,
    )


def newest_checkpoint(folder):
    return load_file(sorted((folder / "checkpoints").glob("*.safetensors"))[-1])


def assert_same_numbers(folder, run):
    """Final weights, device states and every metric but the seconds."""
    checkpoint = newest_checkpoint(folder)
    np.testing.assert_array_equal(checkpoint["global"], run.parameters)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").open()]
    for line, expected in zip(lines, run.lines, strict=True):
        assert {**line, "seconds": 0} == {**expected, "seconds": 0}


@pytest.mark.slow
def test_a_simulation_on_ray_gives_the_numbers_of_the_torch_engine(tmp_path):
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    in_process = asking.run(tmp_path / "experiment.toml", engine="torch", out=tmp_path / "torch")
    done = command(
        "run", tmp_path / "experiment.toml", "--engine", "flower", "--set", "threads=2",
        "--out", tmp_path / "group", "--json",
        timeout=400,
        env={**os.environ, "HOME": str(tmp_path / "home"), **NO_WAY_OUT},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "flower engine, a simulation on Ray" in done.stderr
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["report"] == str(tmp_path / "group/report.html")
    folder = tmp_path / "group/slimfl-seed0"
    assert_same_numbers(folder, in_process)
    ours, theirs = newest_checkpoint(folder), newest_checkpoint(tmp_path / "torch")
    assert ours.keys() == theirs.keys()
    for name in ours:
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
    assert {p.name for p in folder.iterdir()} >= {p.name for p in (tmp_path / "torch").iterdir()}
    assert not (tmp_path / "home").exists(), "something was written to the user's home"
    left = subprocess.check_output(["ps", "-A", "-o", "args="], text=True)
    assert "slimfl-ray-" not in left


def test_flower_is_told_to_stay_offline_before_it_is_imported():
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("FLWR_", "RAY_"))}
    script = (
        "import {module}, os; from flwr.supercore import telemetry;"
        "print(telemetry.FLWR_TELEMETRY_ENABLED, os.environ['RAY_USAGE_STATS_ENABLED'])"
    )
    for module in (
        "slimfl.flower.engine",
        "slimfl.flower.superlink",
        "slimfl.flower.kit",
    ):
        told = subprocess.check_output(
            [sys.executable, "-c", script.format(module=module)], text=True, env=environment
        )
        assert told.split() == ["0", "0"], module
