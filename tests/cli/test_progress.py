"""The bars of several runs: one for each, and one for the remaining time of all."""

from io import StringIO

import pytest
from rich.console import Console

from slimfl import experiment as config
from slimfl.cli.progress import AllRuns, ProgressCallback, progress_bar
from slimfl.round import RoundRecord
from slimfl.runs.sweeps import Job
from tests.hand_made_runs import line

ROUNDS = 10


@pytest.fixture
def bars(monkeypatch):
    """A display that a person watches, and its clock."""
    now = [0.0]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    console = Console(file=StringIO(), force_terminal=True, width=120)
    return progress_bar(console, lambda: now[0]), now


def jobs(tmp_path, *methods):
    return [
        Job(tmp_path / method, config.build({"method": method, "rounds": ROUNDS}))
        for method in methods
    ]


def play(callback, job, now, seconds_per_round, rounds=ROUNDS):
    callback.on_start(job.experiment, 0)
    for round in range(1, rounds + 1):
        now[0] += seconds_per_round
        callback.on_round(RoundRecord.model_validate(line(round, {"0.5x": 0.5})), lambda: None)
    callback.on_end()


def test_the_time_left_of_all_runs_weighs_them_by_their_work(bars, tmp_path):
    progress, now = bars
    small, large = jobs(tmp_path, "vanilla-0.5x", "vanilla-1.0x")
    assert large.effort == 4 * small.effort
    runs = AllRuns(progress, [small, large])
    every = progress.tasks[0]
    play(ProgressCallback(progress, small.name, runs), small, now, 1.0)
    assert every.fields["count"] == "1/2 runs"
    assert every.percentage == pytest.approx(20)
    # ten rounds took ten seconds, and the ten to come are four times the work
    assert every.time_remaining == pytest.approx(40, rel=0.15)
    play(ProgressCallback(progress, large.name, runs), large, now, 4.0)
    assert every.finished
    assert every.fields["count"] == "2/2 runs"


def test_a_run_that_stops_early_leaves_nothing_to_wait_for(bars, tmp_path):
    progress, now = bars
    planned = jobs(tmp_path, "slimfl", "vanilla-1.0x")
    runs = AllRuns(progress, planned)
    play(ProgressCallback(progress, "slimfl", runs), planned[0], now, 1.0, rounds=3)
    assert progress.tasks[0].fields["count"] == "1/2 runs"


def test_rounds_of_an_earlier_process_count(bars, make_run):
    progress, _ = bars
    run = make_run(curves={"1.0x": [0.5] * 4}, experiment={"rounds": 8})
    job = Job(run.path, run.experiment)
    AllRuns(progress, [job, Job(run.path.parent / "other", run.experiment)])
    assert progress.tasks[0].percentage == pytest.approx(25)


def test_one_run_has_one_bar(bars, tmp_path):
    progress, now = bars
    (job,) = jobs(tmp_path, "slimfl")
    play(ProgressCallback(progress, "slimfl", AllRuns(progress, [job])), job, now, 1.0)
    assert [task.description for task in progress.tasks] == ["slimfl"]
