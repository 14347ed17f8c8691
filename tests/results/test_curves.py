"""Curves over rounds: bands over seeds, sums, arrivals."""

import pytest

from slimfl.report.pages.plots import Lines
from slimfl.results.curves import POINTS, curve, thin
from slimfl.results.groups import group


def test_the_band_goes_from_the_lowest_seed_to_the_highest(paper_runs):
    found = curve(group(paper_runs)[0], "accuracy_0.5x")
    assert found.index.tolist() == [1, 2]
    assert found["low"].tolist() == pytest.approx([0.5, 0.6])
    assert found["mean"].tolist() == pytest.approx([0.55, 0.65])
    assert found["high"].tolist() == pytest.approx([0.6, 0.7])


def test_a_curve_ends_where_its_shortest_seed_ends(make_run):
    long = make_run(seed=0, curves={"1.0x": [0.1, 0.2, 0.3]}, experiment={"rounds": 3})
    short = make_run(seed=1, curves={"1.0x": [0.3]}, experiment={"rounds": 3})
    unborn = make_run(seed=2, curves={}, experiment={"rounds": 3})
    (both,) = group([long, short, unborn])
    found = curve(both, "accuracy_1.0x")
    assert found.index.tolist() == [1]
    assert found["mean"].tolist() == pytest.approx([0.2])


def test_energy_adds_up(make_run):
    (only,) = group([make_run()])
    assert curve(only, "sending_j", so_far=True)["mean"].tolist() == [0.25, 0.5]


def test_what_became_of_every_device(make_run):
    run = make_run(
        experiment={"federation__devices": 5}, devices=[0, 1, 3], decoded=[2, 0, 1],
        dropped_out=[4], refused=[3],
    )  # fmt: skip
    plot = Lines(POINTS, 10**6).heat(run)
    assert plot["rounds"] == [1, 2]
    fates = [plot["words"][int(cells[0])] for cells in plot["cells"]]
    assert fates == [
        "segments 1–2", "nothing", "not asked", "refused by the server", "no answer"
    ]  # fmt: skip


def test_long_curves_are_thinned_with_both_ends(make_run):
    kept, went = thin(range(10_000), POINTS)
    assert went
    assert (len(kept), kept[0], kept[-1]) == (POINTS, 0, 9999)
    assert thin([1, 2], POINTS) == ([1, 2], False)
