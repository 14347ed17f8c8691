"""`slimfl population show`, and messages about wrong populations."""

import json
import math

import pytest

SMALL = [
    "--rounds", "2", "--method", "slimfl", "--set", "data.dataset=synthetic",
    "--set", "training.steps=1",
]  # fmt: skip


def test_shows_the_papers_devices(here):
    status, out, _ = here("population", "show", "--json")
    document = json.loads(out)
    assert status == 0
    assert document["devices"] == 10
    [one] = document["classes"]
    assert one["max_width"] == {"1.0x": 10}
    assert [round(heard["mean"], 2) for heard in one["heard"]] == [0.84, 0.65]
    papers = json.loads(here("population", "show", "--set", "radio.rates=equal", "--json")[1])
    # table VI's poor channel
    assert [round(heard["mean"], 2) for heard in papers["classes"][0]["heard"]] == [0.81, 0.63]


@pytest.mark.parametrize("key", ["multiplexing=orthogonal-airtime", "rates=by-size"])
def test_the_sizes_of_the_segments_count_where_the_radio_depends_on_them(here, key):
    """1530 and 3056 parameters, as `slimfl cost` counts them."""
    rates = [] if key == "rates=by-size" else ["--set", "radio.rates=equal"]
    radio = ["--set", f"radio.{key}", *rates, "--set", "data.dataset=synthetic"]
    status, out, error = here("population", "show", *radio, "--json")
    assert status == 0, error
    ratio = 10 ** ((-40 - 23) / 10) * 100**2.5
    rates = [3 * 1530 / 3056, 3.0]  # half of the time that segment 2 would take at 1.5 bit/s/Hz
    needed = [2**rate - 1 for rate in rates]
    if key == "rates=by-size":
        first, second = (2 ** (3 * size / (1530 + 3056)) - 1 for size in (1530, 3056))
        share = json.loads(here("link", "--spectral-efficiency", f"{3 * 1530 / 4586},"
                                f"{3 * 3056 / 4586}", "--json")[1])["slimfl"]["split"]  # fmt: skip
        needed = [first / (share[0] - first * share[1]), second / share[1]]
    heard = [one["mean"] for one in json.loads(out)["classes"][0]["heard"]]
    assert heard == pytest.approx([math.exp(-ratio * max(needed[: i + 1])) for i in range(2)])


def test_the_length_of_messages_counts_with_the_normal_approximation(here):
    radio = ["--set", "radio.decoder=normal", "--set", "radio.rates=equal",
             "--set", "data.dataset=synthetic"]  # fmt: skip
    heard = json.loads(here("population", "show", *radio, "--json")[1])["classes"][0]["heard"]
    # messages of 48,960 bits and more: hardly different from table VI's outage
    assert [round(one["mean"], 2) for one in heard] == [0.81, 0.63]


def test_draws_and_writes_what_a_run_then_uses(here, tmp_path):
    chosen = ["--set", "population.preset=phones", "--set", "radio.split=per-device"]
    status, out, error = here(
        "population", "show", *chosen, "--out", "cell.svg", "--csv", "devices.csv"
    )
    assert status == 0, error
    assert "phone-low" in out
    assert (tmp_path / "cell.svg").read_text().startswith("<?xml")
    assert here("run", *SMALL, *chosen, "--out", "a")[0] == 0
    again = ["--set", "population.file=devices.csv", "--set", "radio.split=per-device"]
    status, out, error = here("run", *SMALL, *again, "--out", "b")
    assert status == 0, error
    assert "outage of segment 1" in out
    assert "heard least" in out
    lines = [
        [json.loads(line) for line in (tmp_path / name / "slimfl-seed0" / "metrics.jsonl").open()]
        for name in "ab"
    ]
    for drawn, read in zip(*lines, strict=True):
        assert {**drawn, "seconds": 0} == {**read, "seconds": 0}


@pytest.mark.parametrize(
    ("population", "words"),
    [
        ('classes=[{name="a",share=0.4},{name="b",share=0.4}]', "sum to 0.8"),
        ('classes=[{name="a",max_width=0.25}]', "no width 0.25"),
        ('classes=[{name="a",macs_per_s=-1}]', "macs_per_s is -1"),
        ("file=nothing.csv", "there is no file"),
        ("file=cut.csv", "lacks the column macs_per_s"),
        ("file=nan.csv", "line 2 of"),
        ("preset=moon", "paper, cell, phones, sensors"),
    ],
)
@pytest.mark.parametrize("command", [["population", "show"], ["run", *SMALL]])
def test_a_wrong_population_is_status_2_and_one_sentence(
    here, tmp_path, command, population, words
):
    assert here("population", "show", "--csv", "nan.csv")[0] == 0
    text = (tmp_path / "nan.csv").read_text()
    (tmp_path / "cut.csv").write_text(text.replace("macs_per_s,", "", 1))
    (tmp_path / "nan.csv").write_text(text.replace("100.0", "nan", 1))
    status, out, error = here(*command, "--set", f"population.{population}")
    assert status == 2
    assert out == ""
    assert words in error
    assert error.count("\n") == 1


def test_a_picture_needs_a_kind(here):
    status, _, error = here("population", "show", "--out", "cell.txt")
    assert status == 2
    assert ".svg" in error
