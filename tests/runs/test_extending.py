"""More rounds for a run: the same numbers as a run that was started with them, or a refusal."""

import json
import logging

import numpy as np
import pytest
from safetensors.numpy import load_file

import slimfl
from slimfl.errors import RequestError
from slimfl.round import RunFolder
from slimfl.round import run as run_simulation
from tests import asking

SMALL = {
    "dataset": "synthetic", "steps": 1, "devices": 3, "data__train_samples": 120,
    "data__test_samples": 40, "threads": 1,
}  # fmt: skip


def numbers(folder):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").open()]
    for line in lines:
        del line["seconds"]
    newest = sorted((folder / "checkpoints").glob("*.safetensors"))[-1]
    return lines, newest.name, load_file(newest)


@pytest.mark.parametrize(
    "setting",
    [
        {},
        {"training__schedule": "theorem1"},
        {"federation__checkpoint_every": 3},
    ],
    ids=["plain", "theorem1", "few checkpoints"],
)
def test_a_run_of_4_rounds_that_gets_7_is_a_run_of_7(setting, tmp_path):
    short, whole = tmp_path / "short", tmp_path / "whole"
    asking.run(out=short, rounds=4, **SMALL, **setting)
    assert len(slimfl.resume(short, rounds=7).lines) == 7
    asking.run(out=whole, rounds=7, **SMALL, **setting)
    lines, newest, tensors = numbers(short)
    other_lines, other_newest, other_tensors = numbers(whole)
    assert lines == other_lines
    assert newest == other_newest == "round-00000007.safetensors"
    assert tensors.keys() == other_tensors.keys()
    for name, values in tensors.items():
        np.testing.assert_array_equal(values, other_tensors[name])
    texts = [(folder / "experiment.toml").read_text() for folder in (short, whole)]
    assert texts[0] == texts[1]
    assert not list(short.rglob("*.tmp"))


def test_a_run_that_was_stopped_can_get_fewer_rounds_but_not_than_it_has(tmp_path):
    sim = slimfl.round.Simulation(asking.load(rounds=9, **SMALL)[0])
    folder = RunFolder.create(tmp_path / "cut", sim.experiment, sim.setting.provenance())
    run_simulation(sim, folder, until=3)
    before = (tmp_path / "cut/experiment.toml").read_text()
    with pytest.raises(RequestError, match="already done 3; give 3 or more"):
        slimfl.resume(tmp_path / "cut", rounds=2)
    assert (tmp_path / "cut/experiment.toml").read_text() == before
    assert len(slimfl.resume(tmp_path / "cut", rounds=5).lines) == 5
    assert len(slimfl.resume(tmp_path / "cut").lines) == 5


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"training__schedule": "cosine"}, "cosine schedule .* which was 2"),
        (
            {"federation__evaluate_every": 3, "callbacks": ["early-stopping"]},
            "round 2 was tested only because it was the last",
        ),
    ],
)
def test_what_depends_on_the_number_of_rounds_is_refused(setting, words, tmp_path):
    asking.run(out=tmp_path / "r", rounds=2, **SMALL, **setting)
    before = (tmp_path / "r/experiment.toml").read_text()
    with pytest.raises(RequestError, match=words):
        slimfl.resume(tmp_path / "r", rounds=4)
    assert (tmp_path / "r/experiment.toml").read_text() == before


def test_the_last_round_of_a_shortened_run_has_a_test(tmp_path):
    asked = asking.load(rounds=9, federation__evaluate_every=4, **SMALL)[0]
    sim = slimfl.round.Simulation(asked)
    folder = RunFolder.create(tmp_path / "cut", sim.experiment, sim.setting.provenance())
    run_simulation(sim, folder, until=3)
    with pytest.raises(RequestError, match="its last round would have no test; give 4 or more"):
        slimfl.resume(tmp_path / "cut", rounds=3)


def test_a_run_that_stopped_early_stays_ended_and_says_so(tmp_path, caplog):
    stop = {"name": "early-stopping", "options": {"patience": 1, "min_improvement": 0.9}}
    ended = asking.run(out=tmp_path / "r", rounds=6, callbacks=[stop], **SMALL)
    assert len(ended.lines) == 2
    with caplog.at_level(logging.WARNING):
        assert len(slimfl.resume(tmp_path / "r", rounds=9).lines) == 2
    assert "ended in round 2 (EarlyStopping) and stays so" in caplog.text
