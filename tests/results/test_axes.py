"""The four x-axes, batteries and their events, against plain sums over the lines of a file."""

import json
import shutil

import pytest

from slimfl.report.pages.run_report import page
from slimfl.results.curves import battery_charge, x_axes
from slimfl.results.groups import group
from slimfl.results.per_run import run_summary
from slimfl.results.records import find
from slimfl.results.rules import energy_words
from slimfl.results.summary import summarise
from tests import asking

CLASSES = [
    {"name": "cell", "share": 0.5, "macs_per_s": 1e8, "battery_j": [0.004, 0.004, 0.002, 0.001]},
    {"name": "mains", "share": 0.5, "macs_per_s": 3e8, "energy": "kappa-1e-28"},
]
SMALL = {
    "rounds": 8,
    "threads": 1,
    "data__dataset": "synthetic",
    "data__train_samples": 300,
    "data__test_samples": 30,
    "training__steps": 2,
    "federation__devices": 8,
    "population__classes": CLASSES,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs")
    for seed in (0, 1):
        asking.run(out=path / f"seed{seed}", seed=seed, **SMALL)
    return path


def lines_of(path):
    return [json.loads(text) for text in (path / "metrics.jsonl").read_text().splitlines()]


def test_every_axis_is_a_plain_sum(folder):
    [both] = group(find([folder]))
    axes = x_axes(both)
    for last in (1, 4, 8):
        seconds = joules = sent_mb = 0.0
        for seed in (0, 1):
            for line in lines_of(folder / f"seed{seed}")[:last]:
                seconds += line["duration_s"] / 2
                joules += (line["energy_j"] + line["compute_energy_j"]) / 2
                joules += line.get("cut_off_energy_j", 0.0) / 2
                sent_mb += sum(line["bits_sent"]) / 8e6 / 2
        assert axes["clock_s"][last] == pytest.approx(seconds)
        assert axes["energy_j"][last] == pytest.approx(joules)
        assert axes["sent_mb"][last] == pytest.approx(sent_mb)


def test_joules_name_their_presets(folder):
    words = energy_words(find([folder]))
    assert words in page(find([folder]))
    assert "horowitz-45nm" in words
    assert "kappa-1e-28" in words


def test_batteries_and_their_events(folder):
    record = find([folder / "seed0"])[0]
    lines = lines_of(folder / "seed0")
    charge = {}
    found = battery_charge(record)
    for row, line in enumerate(lines, 1):
        charge |= dict(zip(line["drained"], line["battery_left_j"], strict=True))
        if len(charge) == 4:
            assert found["left_share"][row] == pytest.approx(sum(charge.values()) / 0.011)
        assert found["empty"][row] == sum(left == 0 for left in charge.values())
    summary = run_summary(record)
    first = next(line for line in lines if line["empty"] >= 1)
    half = next((line for line in lines if line["empty"] >= 4), None)
    assert summary["first_empty"] == {key: first[key] for key in ("round", "clock_s")}
    assert (summary["half_empty"] is None) == (half is None)
    assert json.dumps(summarise([record]).as_json())


def test_a_run_of_an_older_version_has_all_axes(folder, tmp_path):
    """Without clock and computing energy: the airtime of an upload is what a round lasted."""
    same = {key: value for key, value in SMALL.items() if not key.startswith("population")}
    asking.run(out=tmp_path / "now", **same)
    [now] = group(find([tmp_path / "now"]))
    file = tmp_path / "now" / "metrics.jsonl"
    expected = x_axes(now)
    lines = lines_of(tmp_path / "now")
    for line in lines:
        for key in ("clock_s", "duration_s", "compute_energy_j"):
            del line[key]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    # a checkpoint knows the lines that it was written with
    shutil.rmtree(tmp_path / "now" / "checkpoints")
    [old] = group(find([tmp_path / "now"]))
    found = x_axes(old)
    assert found["clock_s"].tolist() == pytest.approx(expected["clock_s"].tolist())
    assert found["energy_j"][8] == pytest.approx(sum(line["energy_j"] for line in lines))
    assert "not counted" in energy_words(old.runs)


def test_the_table_of_time_and_energy_names_presets_and_events(folder):
    from slimfl.report.tables import clocks

    [table] = clocks(group(find([folder / "seed0"])))
    named = {column.heading: column.shown(table.rows[0]) for column in table.columns}
    lines = lines_of(folder / "seed0")
    assert float(named["time s"]) == pytest.approx(lines[-1]["clock_s"], rel=1e-3)
    computing = sum(line["compute_energy_j"] for line in lines)
    assert float(named["computing J"]) == pytest.approx(computing, rel=1e-3)
    assert all(preset in named["counted by"] for preset in ("horowitz-45nm", "kappa-1e-28"))
    first = next(line["round"] for line in lines if line["empty"])
    assert float(named["first empty"]) == first
