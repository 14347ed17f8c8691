"""The bench: interleaved runners, ratios with their spread, tables that show all rows."""

import sys

import pytest

from benchmarks.methods import method_costs
from benchmarks.runners import Runner, interleave, local_runner, rates, ratio
from benchmarks.suite import FLOWER, flower_simulation
from benchmarks.table import tables
from benchmarks.work import Work
from slimfl.errors import RunError
from slimfl.methods import method_names

ECHO = """
import json, sys
print("a library says hello")
print(json.dumps({"startup_s": 0.5}), flush=True)
for number, _ in enumerate(sys.stdin, 1):
    done = {"seconds": 2.0, "images": 10 * number, "peak_mb": 7.0}
    print(json.dumps(done), flush=True)
"""


def test_ratios_are_taken_repetition_by_repetition():
    assert ratio([10, 40, 30], [10, 10, 10]) == {"median": 3, "min": 1, "max": 4}
    assert rates([{"images": 10, "seconds": 4.0}]) == [2.5]


def test_runners_take_turns_and_several_processes_count_as_one():
    one = Runner("one", [[sys.executable, "-c", ECHO]])
    two = Runner("two", [[sys.executable, "-c", ECHO]] * 2)
    results = interleave([one, two], repetitions=2)
    assert results["one"] == [{"seconds": 2.0, "images": 10}, {"seconds": 2.0, "images": 20}]
    assert [result["images"] for result in results["two"]] == [20, 40]
    assert two.peak_mb == 14
    assert all(process.returncode == 0 for process in one.processes + two.processes)


def test_a_runner_that_fails_is_told_by_name():
    broken = Runner("broken", [[sys.executable, "-c", "raise SystemExit('out of luck')"]])
    with pytest.raises(RunError, match=r"'broken'.*out of luck"):
        interleave([broken], 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["native", "torch", "bare-torch", "bare-torch-one-core"])
@pytest.mark.parametrize("kind", ["sustrain", "fedavg"])
def test_every_runner_does_the_work(name, kind):
    work = Work(kind, devices=2, images_per_device=6, batch_size=4)
    [result] = interleave([local_runner(name, work)], 1)[name]
    assert result["images"] == 12
    assert result["seconds"] > 0


@pytest.mark.slow
def test_rounds_through_flower_do_the_work():
    pytest.importorskip("flwr")
    work = Work("fedavg", devices=2, images_per_device=6, batch_size=4)
    [result] = interleave([flower_simulation(work)], 1)[FLOWER]
    assert result["images"] == 12
    assert result["seconds"] > 0


@pytest.mark.slow
def test_a_cohort_is_part_of_the_population():
    work = Work(devices=30, images_per_device=3, batch_size=3, cohort=5)
    [result] = interleave([local_runner("native", work)], 1)["native"]
    assert result["images"] == 15


def test_a_table_shows_every_row_also_those_that_lose_or_fail():
    values = {"median": 2.0, "min": 1.0, "max": 3.0}
    row = {
        "work": {"devices": 1, "images_per_device": 2, "batch_size": 3},
        "images_per_s": {"torch": values, "rival": values},
        "ratios": {"torch / rival": {"median": 0.5, "min": 0.4, "max": 0.6}},
        "startup_s": {"torch": 1.0, "rival": 2.0},
        "peak_mb": {"torch": 1.0, "rival": 2.0},
        "failed": {"other": "no such luck"},
        "flower_overhead_ms": {"median": 3.0, "min": 2.5, "max": 4.0},
    }
    [(title, rows)] = tables({"rows": {"fedavg": row}})
    assert "3.0 (2.5 to 4.0) ms longer" in title
    assert [each["runner"] for each in rows] == ["torch", "rival", "other"]
    assert rows[1]["torch speed-up"] == "0.50 (0.40 to 0.60)"
    assert "no such luck" in rows[2]["images/s"]


SMALLEST = Work(devices=4, images_per_device=4, batch_size=4)


@pytest.fixture(scope="module")
def costs():
    return method_costs(SMALLEST, repetitions=2)


@pytest.mark.slow
def test_every_method_has_a_row_with_the_engine_that_trains_it(costs):
    rows = costs["rows"]
    assert list(rows) == method_names((0.5, 1.0))
    assert rows["split-mix"]["engine"] == "torch"
    assert {row["engine"] for name, row in rows.items() if name != "split-mix"} == {"native"}
    for row in rows.values():
        assert row["seconds_per_round"]["min"] > 0
        assert row["images_per_s"]["max"] >= row["images_per_s"]["min"] > 0
    assert rows["slimfl"]["times_slimfl"] == {"median": 1, "min": 1, "max": 1}


@pytest.mark.slow
def test_the_multiply_adds_of_a_round_are_those_of_who_trains_what(costs):
    """Two weak devices of four, four images each; training counts as three forward passes.

    UL-MobileNet has 941,120 multiply-adds at 0.5x and 3,086,464 at 1.0x per image.
    """
    half, full = 941_120, 3_086_464
    counted = {name: row["multiply_adds_per_round"] for name, row in costs["rows"].items()}
    weak, able = 8, 8
    assert counted["vanilla-1.0x"] == counted["exclusive"]
    passes = 3
    assert counted["vanilla-1.0x"] == passes * able * full
    assert counted["vanilla-0.5x"] == passes * (weak + able) * half
    assert counted["heterofl"] == passes * (weak * half + able * full)
    assert counted["fedrolex"] == counted["heterofl"]
    assert counted["sheterofl"] == passes * ((weak + able) * half + able * full)
    assert counted["slimfl"] == counted["sheterofl"]


def test_the_table_of_methods_shows_what_was_measured():
    values = {"median": 0.25, "min": 0.125, "max": 0.5}
    row = {
        "engine": "native", "seconds_per_round": values, "times_slimfl": values,
        "images_per_s": values, "multiply_adds_per_round": 12e6,
    }  # fmt: skip
    work = {"devices": 4, "images_per_device": 2, "weak_share": 0.5}
    [(title, rows)] = tables({"methods": {"work": work, "rows": {"fjord": row}}})
    assert "50% of them weak" in title
    assert rows[0]["method"] == "fjord"
    assert rows[0]["s/round"] == "0.250 (0.125 to 0.500)"
