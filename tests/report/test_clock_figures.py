"""What the report draws of clock, energy and batteries, against sums over metrics.jsonl."""

import json
import re
from itertools import accumulate

import numpy as np
import pytest

from slimfl.report.pages.run_report import write_report
from slimfl.results.records import find
from tests import asking

TINY = {
    "rounds": 4, "data__dataset": "synthetic", "data__train_samples": 300,
    "data__test_samples": 100, "federation__devices": 4, "training__steps": 2, "threads": 1,
    "population__classes": [{"name": "small", "macs_per_s": 1e6, "battery_j": 1e-3}],
}  # fmt: skip


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    asking.run(out=folder / "one", **TINY)
    [record] = find([folder])
    page = write_report([record], folder / "report.html").read_text()
    found = re.search(r'id="slimfl-plots">(.*?)</script>', page, re.DOTALL)
    return record, page, json.loads(found[1])


def first_curve(plots, key):
    """The axes of a plot, where its first curve stands on each of them, and how high."""
    [plot] = [plot for name, plot in plots.items() if name.startswith(key)]
    line = plot["series"][0]
    return plot["x"], [plot["xs"][index] for index in line["x"]], line["y"]


def test_accuracy_can_be_drawn_over_time_and_all_energy(drawn):
    record, page, plots = drawn
    axes, places, _ = first_curve(plots, "accuracy-cost")
    assert [axis["label"] for axis in axes][3:] == [
        "virtual time so far, s",
        "energy of computing and sending so far, J",
    ]
    seconds, joules = places[3:]
    assert seconds == pytest.approx([line.clock_s for line in record.lines], rel=1e-4)
    spent = accumulate(
        line.energy_j + (line.cut_off_energy_j or 0) + line.compute_energy_j
        for line in record.lines
    )
    assert joules == pytest.approx(list(spent), rel=1e-4)
    assert "horowitz-45nm" in page  # every figure of joules names its preset


def test_batteries_are_drawn_from_full(drawn):
    record, _, plots = drawn
    _, places, charge = first_curve(plots, "batteries")
    assert charge[0] == 100
    left = np.full(4, 1e-3)
    for row in record.lines:
        left[row.drained or []] = row.battery_left_j or []
    assert charge[-1] == pytest.approx(100 * left.sum() / 4e-3, rel=1e-4)
    assert charge[-1] < 100
    assert places[0] == list(range(len(record.lines) + 1))
