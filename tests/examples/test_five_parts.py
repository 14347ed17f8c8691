"""Six parts written outside the package: from TOML, in a grid, on Flower, resumed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import slimfl
from slimfl.errors import RequestError
from slimfl.round import RunFolder
from tests import asking

HOWTO = Path(__file__).parents[2] / "docs/howto"
PARTS = sorted((HOWTO / "mylab").glob("[!_]*.py"))

COMMON = """
rounds = 4
threads = 1
[data]
dataset = "synthetic"
train_samples = 300
test_samples = 100
[training]
steps = 2
batch_size = 8
[federation]
devices = 5
"""

#: What each part adds to an experiment, in TOML.
EXPERIMENTS = {
    "momentum": 'method = "mylab.momentum:CappedMomentum"\nmethod_options = { weak = 2 }\n'
    + COMMON,
    "drifting": COMMON
    + '[radio]\nmodel = "mylab.drifting:DriftingFading"\noptions = { correlation = 0.7 }\n',
    "bit_errors": COMMON
    + '[radio]\nmodel = "mylab.bit_errors:BitErrors"\noptions = { flip_probability = 0.02 }\n',
    "smoothing": COMMON.replace(
        "[training]",
        '[training]\nalgorithm = "mylab.smoothing:SmoothedSuperposition"\n'
        "options = { smoothing = 0.2 }",
    ),
    "top_k": 'stages = [{ name = "mylab.top_k:TopK", options = { share = 0.1 } }]\n' + COMMON,
    "stopping": 'callbacks = [{ name = "mylab.stopping:StopAt", options = { accuracy = 0.0 } }]\n'
    + COMMON,
}


class Interrupt(slimfl.Callback):
    """Plays the kill: leaves after a round, as Ctrl-C would."""

    def __init__(self, round):
        self.round = round

    def on_round(self, record, model):
        if record.round == self.round:
            raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(str(HOWTO))
    monkeypatch.setenv("PYTHONPATH", str(HOWTO))


@pytest.fixture
def toml(tmp_path):
    def write(part):
        path = tmp_path / f"{part}.toml"
        path.write_text(EXPERIMENTS[part])
        return path

    return write


def comparable(records):
    return [{k: v for k, v in r.as_json().items() if k != "seconds"} for r in records]


def command(*words):
    program = "from slimfl.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, words)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def test_there_are_six_and_each_is_short():
    assert {part.stem for part in PARTS} == set(EXPERIMENTS)
    for part in PARTS:
        assert len(part.read_text().splitlines()) < 60, part.name


@pytest.mark.parametrize("part", EXPERIMENTS)
@pytest.mark.parametrize("engine", ["native", "torch"])
def test_from_toml_and_resumed_to_the_same_bits(part, engine, toml, tmp_path):
    given = {"engine": engine, "trust": ["mylab"]}
    whole = asking.run(toml(part), **given)
    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        asking.run(toml(part), out=folder, callbacks=[Interrupt(1)], **given)
    resumed = slimfl.resume(folder, trust=["mylab"])
    assert comparable(resumed.lines) == comparable(whole.lines)
    assert np.array_equal(resumed.parameters, whole.parameters)
    if part == "stopping":
        assert [r.stopped_by for r in whole.lines] == ["StopAt"]
        again = slimfl.resume(folder, trust=["mylab"])
        assert len(again.lines) == 1


def test_a_stranger_s_file_runs_none_of_them(toml, tmp_path):
    for part in EXPERIMENTS:
        with pytest.raises(RequestError, match="--trust mylab"):
            asking.run(toml(part), out=tmp_path / part)


def test_the_parts_do_what_they_say(toml):
    run = {part: asking.run(toml(part), trust=["mylab"]) for part in EXPERIMENTS}
    plain = slimfl.Experiment.read(toml("stopping"), callbacks=[], engine="torch").run()
    # devices 0 and 1 send segment 1 alone
    for record in run["momentum"].lines:
        sent = dict(zip(record.devices, record.decoded, strict=True))
        assert max(sent[0], sent[1]) <= 1
    # fading drifts: from round to round gains are more alike than those of independent rounds
    gains = np.array([record.gains for record in run["drifting"].lines])
    assert (np.diff(gains, axis=0) ** 2).mean() < 2 * gains.var()
    assert all(record.delivered == [5, 5] for record in run["bit_errors"].lines)
    assert not np.array_equal(run["bit_errors"].parameters, plain.parameters)
    assert np.isfinite(run["bit_errors"].parameters).all()
    assert run["smoothing"].lines[0].training_loss != plain.lines[0].training_loss


@pytest.mark.slow
def test_all_in_one_grid_and_reported_without_trust(tmp_path):
    toml = tmp_path / "all.toml"
    toml.write_text(
        EXPERIMENTS["momentum"].replace(
            "[training]",
            '[training]\nalgorithm = "mylab.smoothing:SmoothedSuperposition"',
        )
        + '[radio]\nmodel = "mylab.drifting:DriftingFading"\n'
    )
    out = tmp_path / "out"
    done = command(
        "run", toml, "--set", "seed=0,1", "--on", "local", "--trust", "mylab", "--out", out,
        "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["runs"]) == 2
    shown = command("compare", out, "--json")
    assert shown.returncode == 0, shown.stderr
    refused = command(
        "run", out / sorted(p.name for p in out.iterdir() if p.is_dir())[0] / "experiment.toml"
    )
    assert refused.returncode == 2
    assert "--trust mylab" in refused.stderr


@pytest.mark.slow
def test_on_flower_s_simulation_to_the_same_numbers(tmp_path, toml):
    path = tmp_path / "all.toml"
    path.write_text(
        EXPERIMENTS["momentum"]
        .replace("rounds = 4", "rounds = 2")
        .replace(
            "[training]",
            '[training]\nalgorithm = "mylab.smoothing:SmoothedSuperposition"',
        )
        + '[radio]\nmodel = "mylab.drifting:DriftingFading"\n'
    )
    here = asking.run(path, engine="torch", trust=["mylab"])
    out = tmp_path / "flower"
    done = command(
        "run", path, "--engine", "flower", "--set", "flower.device_engine=torch", "--trust",
        "mylab", "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    [folder] = [RunFolder.open(each) for each in out.iterdir() if each.is_dir()]
    assert comparable(folder.metrics()) == comparable(here.lines)
