"""Runs on disk as a page sees them: growing, incomplete, cut, damaged, deleted."""

import json
import os
import shutil
import threading

import pytest

from slimfl.report.live import Board, run_folders
from slimfl.report.live.followed import CHUNK
from slimfl.report.live.stream import ROUNDS, parse_id
from slimfl.results import load, run_summary
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


def only(mapping):
    [value] = mapping.values()
    return value


def test_rows_are_what_the_metrics_say(started):
    page = Page().connect(read_all(Board([started])))
    # line(): 2.5 s of computing, 0.5 s on the air, 0.25 J, 24 Mbit per round
    assert only(page.rows) == [
        [[0.5, 0.7], 2.5, 0.5, 0.25, 24_000_000],
        [[0.6, 0.8], 5, 1, 0.5, 48_000_000],
    ]


def test_the_table_says_what_compare_says(make_run):
    runs = [
        make_run(curves={"0.5x": [0.1 + 0.02 * i for i in range(25)], "1.0x": [0.5] * 25}),
        make_run("vanilla-0.5x", curves={"0.5x": [0.4, 0.5]}, bits_sent=[8e6, 0.0], refused=[0]),
        make_run(name="not-begun", curves={}),
    ]
    board = read_all(Board([runs[0].path.parent]))
    page = Page().connect(board)
    assert len(page.now) == 3
    for run in runs:
        [key] = [key for key, each in board.runs.items() if each.path == run.path]
        row, now = run_summary(run), page.now[key]
        assert now["accuracy"] == {w: pytest.approx(a["final"]) for w, a in row["accuracy"].items()}
        assert now["best"] == {w: a["best"] for w, a in row["accuracy"].items()}
        assert now["delivered"] == [segment["delivered_share"] for segment in row["segments"]]
        assert now["energy_j"] == pytest.approx(row["total"]["energy_j"])
        assert now["airtime_s"] == pytest.approx(row["total"]["airtime_s"])
        assert (now["rounds"], now["refused"]) == (row["rounds_done"], row["refused"])
        assert (now["state"] == "finished") == row["complete"]


def test_rounds_without_an_evaluation_have_no_accuracy(make_run):
    run = make_run(curves={}, experiment={"rounds": 9})
    for number, accuracy in enumerate(({}, ACCURACY, {}), 1):
        append(run.path, line(number, accuracy))
    page = Page().connect(read_all(Board([run.path])))
    assert [row[0] for row in only(page.rows)] == [0, [0.55, 0.66], 0]


def test_a_growing_run_is_sent_once(started):
    board, page = Board([started]), Page()
    for number in range(3, 12):
        append(started, line(number, ACCURACY))
        page.connect(read_all(board))
        assert len(only(page.rows)) == number
    assert page.received == 11
    page.connect(read_all(board))
    assert page.received == 11


def test_a_restarted_server_goes_on_where_the_page_is(started):
    page = Page().connect(read_all(Board([started])))
    append(started, line(3, ACCURACY))
    page.connect(read_all(Board([started])))
    assert (len(only(page.rows)), page.received) == (3, 3)


def test_a_torn_line_waits_for_its_end(started):
    board = Board([started])
    whole = json.dumps(line(3, ACCURACY)) + "\n"
    with (started / "metrics.jsonl").open("a") as file:
        file.write(whole[:100])
        file.flush()
        page = Page().connect(read_all(board))
        assert len(only(page.rows)) == 2
        assert only(page.now)["problem"] is None
        file.write(whole[100:])
    assert len(only(page.connect(read_all(board)).rows)) == 3


@pytest.mark.parametrize("new", [0, 1, 2, 3])
def test_a_resumed_run_that_cut_its_metrics_is_shown_as_it_is(started, new):
    """Whether the file is shorter, as long as before, or longer when it is looked at next."""
    append(started, line(3, ACCURACY))
    board, other = read_all(Board([started])), Page()
    page = Page().connect(board)
    metrics = started / "metrics.jsonl"
    first = metrics.read_bytes().splitlines(keepends=True)[0]
    with metrics.open("r+b") as file:
        file.truncate(len(first))
    for number in range(2, 2 + new):
        append(started, line(number, {"0.5x": 0.25, "1.0x": 0.75}, energy_j=0.75))
    page.connect(read_all(board))
    assert only(page.rows) == only(other.connect(read_all(Board([started]))).rows)
    assert len(only(page.rows)) == 1 + new
    if new:
        assert only(page.rows)[1][3] == 1.0
    # a page that was away all the time learns of it from another server as well
    away = Page()
    away.rows, away.last_event_id = {}, page.last_event_id
    away.rows = {key: list(rows) for key, rows in page.rows.items()}
    metrics.write_bytes(b"")
    assert only(away.connect(read_all(Board([started]))).rows) == []


def test_a_damaged_line_is_named_and_what_comes_before_stays(started):
    board = Board([started])
    with (started / "metrics.jsonl").open("a") as file:
        file.write("{}\n")
    append(started, line(4, ACCURACY))
    page = Page().connect(read_all(board))
    assert len(only(page.rows)) == 2
    assert only(page.now)["state"] == "damaged"
    assert "line 3 of" in only(page.now)["problem"]
    # resume cuts there and goes on
    with RunFolder(started).writing() as writer:
        writer.keep_until(2)
    append(started, line(3, ACCURACY))
    page.connect(read_all(board))
    assert (len(only(page.rows)), only(page.now)["problem"]) == (3, None)


def test_a_line_without_an_end_is_refused_before_it_is_read(started):
    with (started / "metrics.jsonl").open("ab") as file:
        file.truncate(10**9)  # zeros that take no space
    page = Page().connect(read_all(Board([started])))
    assert only(page.now)["state"] == "damaged"
    assert "bytes" in only(page.now)["problem"]
    assert len(only(page.now)["problem"]) <= 300


def test_long_runs_come_in_pieces(make_run):
    run = make_run(curves={}, experiment={"rounds": 10**6})
    count = ROUNDS + CHUNK + 7
    raw = "".join(json.dumps(line(n, ACCURACY)) + "\n" for n in range(1, count + 1))
    (run.path / "metrics.jsonl").write_text(raw)
    board, page = Board([run.path]), Page()
    assert board.refresh()
    assert len(only(page.connect(board).rows)) == CHUNK
    assert not board.caught_up
    page.connect(read_all(board))
    assert (len(only(page.rows)), page.received) == (count, count)
    assert only(page.rows)[-1][3] == count * 0.25


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
    assert [*parse_id(page.last_event_id)] == [*page.listed]
    # another run in the same place
    shutil.rmtree(second.path)
    make_run("vanilla-1.0x", curves={"1.0x": [0.9, 0.9, 0.9]}, name="group/vanilla")
    page.connect(read_all(board))
    assert [row[0] for row in page.rows[next(iter(page.listed))]] == [[0.9]] * 3
    shutil.rmtree(folder)
    assert page.connect(read_all(board)).listed == {}


def test_states(make_run):
    run = make_run(experiment={"rounds": 3})
    board = Board([run.path])

    def state():
        return only(Page().connect(read_all(board)).now)["state"]

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
        states.append(only(Page().connect(read_all(board)).now)["state"])
    assert states == ["stopped", "finished", "finished"]
    ended = make_run("vanilla-1.0x", experiment={"rounds": 9}, curves={"1.0x": [0.5]})
    append(ended.path, line(2, {"1.0x": 0.6}, stopped_by="Patience"))
    assert only(Page().connect(read_all(Board([ended.path]))).now)["state"] == "finished"


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
    assert page.now[key]["state"] == ("damaged")
    assert len(page.now) == 2


def test_links_are_not_followed(tmp_path, make_run):
    run = make_run()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "runs").symlink_to(run.path.parent)
    assert run_folders([elsewhere]).runs == {}
    copy = make_run(name="linked", curves={})
    (copy.path / "metrics.jsonl").symlink_to(run.path / "metrics.jsonl")
    page = Page().connect(read_all(Board([copy.path])))
    assert (only(page.now)["state"], only(page.rows)) == ("damaged", [])


def test_of_too_many_runs_the_newest_are_kept(make_run, monkeypatch):
    monkeypatch.setattr("slimfl.report.live.scan.MOST_RUNS", 2)
    for age, name in ((3, "c"), (1, "a"), (2, "b")):
        path = make_run(name=name).path
        os.utime(path / "experiment.toml", (1e9 - age, 1e9 - age))
    found = run_folders([path.parent])
    assert ([each.name for each in found.runs], found.left_out) == (["a", "b"], 1)


@pytest.mark.parametrize(
    "text", ["7", "x" * 10**6, "0123456789ab:1:zz", "é,,,", "0" * 12 + ":5:" + "f" * 16]
)
def test_an_id_that_is_not_ours_gets_everything(started, text):
    page = Page()
    page.last_event_id = text
    assert len(only(page.connect(read_all(Board([started]))).rows)) == 2


def test_a_page_that_knows_more_than_there_is_starts_over(started):
    page = Page().connect(read_all(Board([started])))
    key = next(iter(page.rows))
    page.last_event_id = page.last_event_id.replace(":2:", ":3:")
    page.rows[key].append("of the future")
    assert len(only(page.connect(read_all(Board([started]))).rows)) == 2


def test_the_runs_are_only_read(started):
    before = {path: path.read_bytes() for path in started.rglob("*") if path.is_file()}
    Page().connect(read_all(Board([started])))
    assert {path: path.read_bytes() for path in started.rglob("*") if path.is_file()} == before
    assert load(started).lines


def test_rows_never_come_before_what_explains_them(make_run):
    """While one thread reads, others see whole steps: rounds, widths and rows of one moment."""
    run = make_run(curves={}, experiment={"rounds": 10**6})
    raw = "".join(json.dumps(line(n, ACCURACY)) + "\n" for n in range(1, 3001))
    (run.path / "metrics.jsonl").write_text(raw)
    board, page = Board([run.path]), Page()
    thread = threading.Thread(target=board.follow, daemon=True)
    thread.start()
    try:
        seen = set()
        while page.rows == {} or len(only(page.rows)) < 3000:
            page.connect(board)
            if page.rows:
                rows, now = only(page.rows), only(page.now)
                assert len(rows) == now["rounds"]
                assert all(len(row[0]) == len(now["widths"]) for row in rows)
                seen.add(len(rows))
    finally:
        board.close()
        thread.join()
    assert len(seen) > 2
    assert page.received == 3000


def test_rounds_that_differ_far_before_the_last_are_noticed(started):
    """For example in a copy of the folder: the last line is the same, the history is not."""
    page = Page().connect(read_all(Board([started])))
    metrics = started / "metrics.jsonl"
    metrics.write_bytes(metrics.read_bytes().replace(b'"0.5x": 0.5,', b'"0.5x": 0.4,'))
    page.connect(read_all(Board([started])))
    assert [row[0][0] for row in only(page.rows)] == [0.4, 0.6]
