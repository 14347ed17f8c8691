"""Sweeps from Python: their runs, equality with slimfl.run, and resuming."""

import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from torch import nn

import slimfl
from slimfl.data import synthetic
from slimfl.errors import RequestError
from tests import asking

SMALL = {"dataset": "synthetic", "rounds": 2, "steps": 2, "devices": 3}


@pytest.mark.slow
def test_every_combination_is_the_run_that_slimfl_run_makes(tmp_path):
    runs = asking.compare(
        alpha=[0.1, 1.0],
        channel=["good", "poor"],
        out=tmp_path,
        on="local",
        workers=2,
        progress=True,
        **SMALL,
    )
    asked = [(one.experiment.data.alpha, one.experiment.radio.channel) for one in runs]
    assert asked == [(0.1, "good"), (0.1, "poor"), (1.0, "good"), (1.0, "poor")]
    for one in runs:
        data, radio = one.experiment.data, one.experiment.radio
        alone = asking.run(alpha=data.alpha, channel=radio.channel, **SMALL)
        np.testing.assert_array_equal(one.parameters, alone.parameters)
        assert one.final_accuracy == alone.final_accuracy
    assert {one.folder.name for one in runs} >= {"slimfl-data.alpha=0.1-radio.channel=good-seed0"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep")
    return asking.compare(
        method=["slimfl", "vanilla-all"], seed=[0, 1], alpha=[0.5, 5.0], out=out, **SMALL
    )


def test_vanilla_fl_of_all_widths_is_one_run_per_width(runs):
    methods = [one.experiment.method for one in runs]
    assert len(runs) == 12
    assert sorted(set(methods)) == ["slimfl", "vanilla-0.5x", "vanilla-1.0x"]


def test_tables_say_what_differs(runs):
    table = runs.rounds
    assert len(table) == 12 * 2
    assert list(table.columns[:4]) == ["method", "seed", "alpha", "round"]
    summary = runs.summary()
    assert len(summary) == 12
    mine = summary[(summary.method == "slimfl") & (summary.seed == 1) & (summary.alpha == 0.5)]
    [one] = runs.where(method="slimfl", seed=1, alpha=0.5)
    assert mine["accuracy_1.0x"].item() == one.final_accuracy["1.0x"]
    assert mine["energy_j"].item() == pytest.approx(one.energy_j)
    with pytest.raises(RequestError, match="do not differ in 'devices'"):
        runs.where(devices=3)


def test_runs_are_a_sequence_that_prints_and_draws(runs):
    assert len(runs[2:5]) == 3
    assert repr(runs).startswith("Runs(12 runs:")
    assert runs._repr_html_().count("<tr") == 13
    assert "<th>alpha</th>" in runs._repr_html_()
    assert runs.plot()._repr_png_().startswith(b"\x89PNG")


def test_the_same_call_goes_on_and_computes_nothing_twice(tmp_path):
    first = asking.compare(alpha=[0.1, 1.0], out=tmp_path, **SMALL)
    before = {one.folder: (one.folder / "metrics.jsonl").read_bytes() for one in first}
    (tmp_path / "slimfl-data.alpha=1.0-seed0" / "metrics.jsonl").unlink()
    again = asking.compare(alpha=[0.1, 1.0], out=tmp_path, **SMALL)
    assert (tmp_path / "slimfl-data.alpha=0.1-seed0" / "metrics.jsonl").read_bytes() == before[
        tmp_path / "slimfl-data.alpha=0.1-seed0"
    ]
    assert [one.final_accuracy for one in again] == [one.final_accuracy for one in first]
    with pytest.raises(RequestError, match="another experiment"):
        asking.compare(alpha=[0.1, 1.0], out=tmp_path, **{**SMALL, "steps": 3})


def test_a_tuple_is_one_value_and_a_list_of_them_several():
    runs = asking.compare(widths=[(0.5, 1.0), (0.25, 1.0)], **SMALL)
    assert [one.experiment.model.widths for one in runs] == [(0.5, 1.0), (0.25, 1.0)]
    assert runs.folder is None


def test_seeds_count_from_the_experiment_s_own():
    one = slimfl.Experiment(seed=3, method="slimfl", **asking.nested(SMALL))
    assert [run.experiment.seed for run in slimfl.compare(one, seeds=2)] == [3, 4]


def test_without_a_method_slimfl_is_compared_with_vanilla_fl():
    runs = slimfl.compare(**asking.nested(SMALL))
    assert [run.experiment.method for run in runs] == ["slimfl", "vanilla-0.5x", "vanilla-1.0x"]


def test_own_objects_stay_in_this_process(tmp_path):
    network = slimfl.slimmable(nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.Linear(8, 10)))
    data = synthetic(train=200, test=50, size=6)
    small = {key: value for key, value in SMALL.items() if key != "dataset"}
    common = {"network": network, "dataset": data, **small}
    runs = asking.compare(channel=["good", "poor"], out=tmp_path, **common)
    for one in runs:
        import copy

        alone = asking.run(
            channel=one.experiment.radio.channel, **{**common, "network": copy.deepcopy(network)}
        )
        np.testing.assert_array_equal(one.parameters, alone.parameters)
    again = asking.compare(channel=["good", "poor"], out=tmp_path, **common)
    assert [one.lines for one in again] == [one.lines for one in runs]


@dataclass
class Count(slimfl.Callback):
    rounds: int = 0

    def on_round(self, record, model):
        self.rounds += 1


def test_callbacks_watch_every_run():
    count = Count()
    asking.compare(seed=[0, 1], callbacks=[count], **SMALL)
    assert count.rounds == 4
    runs = asking.compare(
        seed=[0, 1], **{**SMALL, "rounds": 9},
        callbacks=[{"name": "early-stopping", "options": {"patience": 1, "min_improvement": 0.9}}],
    )  # fmt: skip
    assert [len(one.lines) for one in runs] == [2, 2]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"alpha": []}, "alpha is an empty list"),
        ({"alpha": [0.1, -1]}, "data.alpha"),
        ({"alhpa": [1, 2]}, "did you mean 'data.alpha'"),
        ({"on": "mars"}, "local, ray"),
        ({"on": "local", "callbacks": [slimfl.Callback()]}, "cannot leave this process"),
        ({"seed": list(range(20_001))}, "more than 10,000 runs"),
    ],
)
def test_a_sweep_that_cannot_be_is_refused_before_anything_runs(values, words, tmp_path):
    with pytest.raises(RequestError, match=words):
        asking.compare(out=tmp_path / "none", **values, **SMALL)
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_a_script_needs_no_guard(tmp_path):
    """Processes that ran the script again would begin the sweep again, and fail."""
    script = tmp_path / "mine.py"
    script.write_text(
        "import slimfl\n"
        f"given = {asking.nested(SMALL)!r}\n"
        "runs = slimfl.compare(seeds=2, on='local', out='runs', method='slimfl', **given)\n"
        "print(len(runs), __file__)\n"
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"2 {script}\n"
