"""Runs on disk as a page sees them: growing, incomplete, cut, damaged, deleted."""

import json
import os
import shutil
import threading

import pytest

from slimfl.report.live.board import Board, Reader, run_folders
from slimfl.report.live.followed import CHUNK
from slimfl.results.per_run import run_summary
from slimfl.results.records import load
from slimfl.round import RunFolder
from tests.hand_made_runs import line
from tests.report.live.pages import Page, read_all
from tests.report.live.serving import append

ACCURACY = {"0.5x": 0.55, "1.0x": 0.66}


@pytest.fixture
def started(make_run):
    """A run of two rounds that is to have many more."""
    run = make_run(experiment={"rounds": 10**6}, curves={"0.5x": [0.5, 0.6], "1.0x": [0.7, 0.8]})
    return run.path


def test_curves_are_what_the_metrics_say(started):
    run = Page().connect(read_all(Board([started]))).run
    # line(): 2.5 s of computing, 0.5 s on the air, 0.25 J, 24 Mbit per round
    assert run["x"] == {
        "round": [1, 2], "compute_s": [2.5, 5], "airtime_s": [0.5, 1], "energy_j": [0.25, 0.5],
        "sent_mb": [3, 6],
    }  # fmt: skip
    assert run["y"] == {"0.5x": [50, 60], "1.0x": [70, 80]}


def test_the_table_says_what_compare_says(make_run):
    runs = [
        make_run(curves={"0.5x": [0.1 + 0.02 * i for i in range(25)], "1.0x": [0.5] * 25}),
        make_run("vanilla-0.5x", curves={"0.5x": [0.4, 0.5]}, bits_sent=[8e6, 0.0], refused=[0]),
        make_run(name="not-begun", curves={}),
    ]
    board = read_all(Board([runs[0].path.parent]))
    page = Page().connect(board)
    assert len(page.runs) == 3
    for run in runs:
        [key] = [key for key, each in board.runs.items() if each.path == run.path]
        row, now = run_summary(run), page.runs[key]
        values = dict(zip(page.columns, (value for value, _ in now["cells"]), strict=True))
        for width in ("0.5x", "1.0x"):
            final = row["accuracy"].get(width, {"final": None})["final"]
            assert values[f"accuracy.{width}"] == (final and pytest.approx(final))
        for number, segment in enumerate(row["segments"], 1):
            assert values[f"delivered.{number}"] == segment["delivered_share"]
        assert values["energy_j"] == pytest.approx(row["total"]["energy_j"])
        assert values["airtime_s"] == pytest.approx(row["total"]["airtime_s"])
        assert values["rounds"] == row["rounds_done"]
        assert (now["state"] == "finished") == row["complete"]


def test_rounds_without_an_evaluation_are_no_points(make_run):
    run = make_run(curves={}, experiment={"rounds": 9})
    for number, accuracy in enumerate(({}, ACCURACY, {}), 1):
        append(run.path, line(number, accuracy))
    found = Page().connect(read_all(Board([run.path]))).run
    assert (found["rounds"], found["x"]["round"], found["y"]["1.0x"]) == (3, [2], [66])


def test_only_what_changed_is_sent(started, make_run):
    make_run("vanilla-1.0x", curves={"1.0x": [0.5]})
    board, page, reader = Board([started.parent]), Page(), Reader()
    for number in range(3, 6):
        append(started, line(number, ACCURACY))
        for text in reader.news(read_all(board)):
            page.take(text)
    assert page.received == 2 + 1 + 1
    assert not list(reader.news(read_all(board)))


def test_a_torn_line_waits_for_its_end(started):
    board = Board([started])
    whole = json.dumps(line(3, ACCURACY)) + "\n"
    with (started / "metrics.jsonl").open("a") as file:
        file.write(whole[:100])
        file.flush()
        page = Page().connect(read_all(board))
        assert page.run["rounds"] == 2
        assert page.run["problem"] is None
        file.write(whole[100:])
    assert page.connect(read_all(board)).run["rounds"] == 3


@pytest.mark.parametrize("new", [0, 1, 2, 3])
def test_a_resumed_run_that_cut_its_metrics_is_shown_as_it_is(started, new):
    """Whether the file is shorter, as long as before, or longer when it is looked at next."""
    append(started, line(3, ACCURACY))
    board, other = read_all(Board([started])), Page()
    metrics = started / "metrics.jsonl"
    first = metrics.read_bytes().splitlines(keepends=True)[0]
    with metrics.open("r+b") as file:
        file.truncate(len(first))
    for number in range(2, 2 + new):
        append(started, line(number, {"0.5x": 0.25, "1.0x": 0.75}, energy_j=0.75))
    page = Page().connect(read_all(board))
    assert page.runs == other.connect(read_all(Board([started]))).runs
    assert page.run["rounds"] == 1 + new
    if new:
        assert page.run["x"]["energy_j"][1] == 1.0


def test_a_damaged_line_is_named_and_what_comes_before_stays(started):
    board = Board([started])
    with (started / "metrics.jsonl").open("a") as file:
        file.write("{}\n")
    append(started, line(4, ACCURACY))
    page = Page().connect(read_all(board))
    assert page.run["rounds"] == 2
    assert page.run["state"] == "damaged"
    assert "line 3 of" in page.run["problem"]
    # resume cuts there and goes on
    with RunFolder(started).writing() as writer:
        writer.keep_until(2)
    append(started, line(3, ACCURACY))
    page.connect(read_all(board))
    assert (page.run["rounds"], page.run["problem"]) == (3, None)


def test_a_line_without_an_end_is_refused_before_it_is_read(started):
    with (started / "metrics.jsonl").open("ab") as file:
        file.truncate(10**9)  # zeros that take no space
    page = Page().connect(read_all(Board([started])))
    assert page.run["state"] == "damaged"
    assert "bytes" in page.run["problem"]
    assert len(page.run["problem"]) <= 300


def test_long_runs_are_read_in_pieces_and_thinned(make_run):
    run = make_run(curves={}, experiment={"rounds": 10**6})
    count = 40 * CHUNK + 7
    raw = "".join(json.dumps(line(n, ACCURACY)) + "\n" for n in range(1, count + 1))
    (run.path / "metrics.jsonl").write_text(raw)
    board = Board([run.path])
    assert board.refresh()
    assert not board.caught_up
    found = Page().connect(read_all(board)).run
    assert (found["rounds"], found["energy_j"]) == (count, count * 0.25)
    assert (found["x"]["round"][0], found["x"]["round"][-1]) == (1, count)
    assert len(found["y"]["1.0x"]) == len(found["x"]["round"]) == 30_000


def test_runs_come_and_go(make_run, tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    board, page = Board([folder]), Page()
    assert page.connect(read_all(board)).listed == {}
    first = make_run()
    second = make_run("vanilla-1.0x", curves={"1.0x": [0.5, 0.6]}, name="group/vanilla")
    page.connect(read_all(board))
    assert {run["path"] for run in page.listed.values()} == {
        "runs/slimfl-seed0",
        "runs/group/vanilla",
    }
    assert {run["name"] for run in page.listed.values()} == {"SlimFL", "Vanilla FL-1.0x"}
    shutil.rmtree(first.path)
    page.connect(read_all(board))
    assert [run["path"] for run in page.listed.values()] == ["runs/group/vanilla"]
    assert [*page.runs] == [*page.listed]
    # another run in the same place
    shutil.rmtree(second.path)
    make_run("vanilla-1.0x", curves={"1.0x": [0.9, 0.9, 0.9]}, name="group/vanilla")
    page.connect(read_all(board))
    assert page.run["y"] == {"1.0x": [90] * 3}
    shutil.rmtree(folder)
    assert page.connect(read_all(board)).listed == {}


def test_states(make_run):
    run = make_run(experiment={"rounds": 3})
    board = Board([run.path])

    def state():
        return Page().connect(read_all(board)).run["state"]

    assert state() == "stopped"
    with RunFolder(run.path).writing():
        assert state() == "running"
        append(run.path, line(3, ACCURACY))
    assert state() == "finished"
    (run.path / "metrics.jsonl").unlink()
    assert state() == "waiting"


def test_a_run_that_stopped_early_is_finished(make_run):
    wish = {
        "rounds": 50, "federation__stop_on_convergence": True, "federation__convergence_window": 3,
        "federation__convergence_accuracy": 0.7, "federation__convergence_deviation": 0.05,
    }  # fmt: skip
    run = make_run(experiment=wish, curves={"0.5x": [0.1, 0.8], "1.0x": [0.1, 0.8]})
    board = Board([run.path])
    states = []
    for number in range(3, 6):
        append(run.path, line(number, {"0.5x": 0.8, "1.0x": 0.8}))
        states.append(Page().connect(read_all(board)).run["state"])
    assert states == ["stopped", "finished", "finished"]
    ended = make_run("vanilla-1.0x", experiment={"rounds": 9}, curves={"1.0x": [0.5]})
    append(ended.path, line(2, {"1.0x": 0.6}, stopped_by="Patience"))
    assert Page().connect(read_all(Board([ended.path]))).run["state"] == "finished"


@pytest.mark.parametrize(
    "text", ["", "method = 3", "[", "x" * (1 << 21), '[provenance]\nversions = "<b>"']
)
def test_an_unreadable_experiment_is_listed_with_the_reason(tmp_path, make_run, text):
    make_run()
    odd = tmp_path / "runs" / "odd"
    odd.mkdir()
    (odd / "experiment.toml").write_text(text)
    os.mkfifo(odd / "metrics.jsonl")
    page = Page().connect(read_all(Board([tmp_path / "runs"])))
    [key] = [key for key, run in page.listed.items() if run["path"] == "runs/odd"]
    assert page.runs[key]["state"] == "damaged"
    assert len(page.runs) == 2


def test_links_are_not_followed(tmp_path, make_run):
    run = make_run()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "runs").symlink_to(run.path.parent)
    assert run_folders([elsewhere]) == ({}, 0)
    copy = make_run(name="linked", curves={})
    (copy.path / "metrics.jsonl").symlink_to(run.path / "metrics.jsonl")
    page = Page().connect(read_all(Board([copy.path])))
    assert (page.run["state"], page.run["rounds"]) == ("damaged", 0)


def test_of_too_many_runs_the_newest_are_kept(make_run, monkeypatch):
    monkeypatch.setattr("slimfl.report.live.board.MOST_RUNS", 2)
    for age, name in ((3, "c"), (1, "a"), (2, "b")):
        path = make_run(name=name).path
        os.utime(path / "experiment.toml", (1e9 - age, 1e9 - age))
    found, left_out = run_folders([path.parent])
    assert ([each.name for each in found], left_out) == (["a", "b"], 1)


def test_the_runs_are_only_read(started):
    before = {path: path.read_bytes() for path in started.rglob("*") if path.is_file()}
    Page().connect(read_all(Board([started])))
    assert {path: path.read_bytes() for path in started.rglob("*") if path.is_file()} == before
    assert load(started).lines


def test_rounds_never_come_before_what_explains_them(make_run):
    """While one thread reads, others see whole steps: rounds, widths and points of one moment."""
    run = make_run(curves={}, experiment={"rounds": 10**6})
    board, page = Board([run.path]), Page()
    thread = threading.Thread(target=board.follow, daemon=True)
    thread.start()
    try:
        seen = set()
        while len(seen) < 3:
            append(run.path, line(len(seen) + 1, ACCURACY))
            while page.runs == {} or page.run["rounds"] < len(seen) + 1:
                page.connect(board)
                if page.runs:
                    places = [*page.run["x"].values(), *page.run["y"].values()]
                    assert {len(one) for one in places} == {page.run["rounds"]}
            seen.add(page.run["rounds"])
    finally:
        board.close()
        thread.join()
