"""Progress of several runs, weighted by their work, and what a log shows of it."""

import pytest

from slimfl import experiment as config
from slimfl.round import RoundRecord
from slimfl.runs.progress import LINE_EVERY_S, Progress, ProgressCallback, _Log
from slimfl.runs.sweeps import Job
from tests.hand_made_runs import line

ROUNDS = 10


class Screen:
    """Remembers what was shown."""

    def show(self, done, total, text):
        self.share, self.text = done / total, text

    def close(self):
        pass


def jobs(tmp_path, *methods):
    return [
        Job(tmp_path / method, config.build({"method": method, "rounds": ROUNDS}))
        for method in methods
    ]


def play(callback, job, rounds=ROUNDS):
    callback.on_start(job.experiment, 0)
    for round in range(1, rounds + 1):
        callback.on_round(RoundRecord.model_validate(line(round, {"0.5x": 0.5})), lambda: None)
    callback.on_end()


def test_runs_count_by_their_work(tmp_path):
    small, large = both = jobs(tmp_path, "vanilla-0.5x", "vanilla-1.0x")
    assert large.effort == 4 * small.effort
    screen, rounds = Screen(), [0, 0]
    play(ProgressCallback(both, rounds, 0, screen), small)
    assert screen.share == pytest.approx(0.2)
    assert screen.text == "1 of 2 runs; vanilla-0.5x: round 10 of 10, 0.5x 50.0%"
    play(ProgressCallback(both, rounds, 1, screen), large, rounds=5)
    assert screen.share == pytest.approx(0.6)


def test_one_run_needs_no_count(tmp_path):
    (job,) = jobs(tmp_path, "slimfl")
    screen = Screen()
    play(ProgressCallback([job], [0], 0, screen), job, rounds=3)
    assert (screen.share, screen.text) == (0.3, "slimfl: round 3 of 10, 0.5x 50.0%")


def test_rounds_of_an_earlier_process_count(make_run):
    run = make_run(curves={"1.0x": [0.5] * 4}, experiment={"rounds": 8})
    runs = [Job(run.path, run.experiment), Job(run.path.parent / "other", run.experiment)]
    told = []
    Progress(runs, lambda *numbers: told.append(numbers), complete=1).tell(
        [job.rounds_done for job in runs]
    )
    [(done, total, finished, count)] = told
    assert (done / total, finished, count) == (0.25, 1, 3)


def test_a_log_has_a_line_per_tenth_and_after_ten_minutes(capsys):
    now = [0.0]
    log = _Log(lambda: now[0])
    for done in range(101):
        log.show(done, 1000, f"{done}")
    now[0] = LINE_EVERY_S
    log.show(101, 1000, "late")
    assert capsys.readouterr().err.split() == ["100", "late"]
