"""The progress bars of runs: accuracies, rounds per second, remaining time of each and all.

Runs of several methods take different times per round, so the bar for all of them counts rounds
weighted by their work.
"""

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from slimfl.experiment import Experiment
from slimfl.nn import Vector
from slimfl.round import Callback, RoundRecord
from slimfl.runs.sweeps import Job

#: Time window for the speed: the bar for all runs must not jump with each of them.
PACE_S = 600.0


def progress_bar(console: Console, clock: Callable[[], float] = time.monotonic) -> Progress:
    """Bars on standard error, hidden unless standard output is a terminal."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[count]}"),
        TextColumn("{task.fields[accuracy]}"),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
        console=console,
        expand=True,
        disable=not (sys.stdout.isatty() and console.is_terminal),
        speed_estimate_period=PACE_S,
        get_time=clock,
    )


class AllRuns:
    """A bar above the others for all runs of a command, if there are several."""

    def __init__(self, progress: Progress, jobs: Sequence[Job]) -> None:
        self.progress, self.jobs = progress, {job.folder.name: job for job in jobs}
        self.rounds = {job.folder.name: min(job.rounds_done, job.rounds) for job in jobs}
        self.task: TaskID | None = None
        if len(jobs) > 1:
            total = sum(job.effort * job.rounds for job in jobs)
            self.task = progress.add_task(
                "all runs", total=total, completed=int(self._done), count="", accuracy="", speed=""
            )
            self.tell()

    @property
    def _done(self) -> float:
        return sum(job.effort * self.rounds[name] for name, job in self.jobs.items())

    def reached(self, name: str, round: int) -> None:
        """A run has finished this round."""
        self.rounds[name] = round
        self.tell()

    def ended(self, name: str) -> None:
        """A run has ended, perhaps before its last round."""
        self.reached(name, self.jobs[name].rounds)

    def tell(self) -> None:
        """Update the bar."""
        if self.task is None:
            return
        finished = sum(self.rounds[name] >= job.rounds for name, job in self.jobs.items())
        count = f"{finished}/{len(self.jobs)} runs"
        self.progress.update(self.task, completed=self._done, count=count)


class ProgressCallback(Callback):
    """Moves one bar of a shared display, and the bar of all runs."""

    def __init__(self, progress: Progress, name: str, runs: AllRuns) -> None:
        self.progress, self.name, self.runs = progress, name, runs
        self.task: TaskID | None = None
        self.rounds = 0

    def on_start(self, experiment: Experiment, rounds_done: int) -> None:
        """Show the bar, with the rounds of an earlier process already on it."""
        self.rounds = experiment.rounds
        self.task = self.progress.add_task(
            self.name,
            total=experiment.rounds,
            completed=rounds_done,
            count=f"{rounds_done}/{self.rounds}",
            accuracy="",
            speed="",
        )

    def on_round(self, record: RoundRecord, model: Callable[[], Vector]) -> None:
        """Advance by one round."""
        self.runs.reached(self.name, record.round)
        if self.task is None:
            return
        fields: dict[str, Any] = {"count": f"{record.round}/{self.rounds}"}
        if record.accuracy:
            fields["accuracy"] = "  ".join(f"{w} {a:.1%}" for w, a in record.accuracy.items())
        speed = self.progress.tasks[self.progress.task_ids.index(self.task)].speed
        fields["speed"] = f"{speed:.2f} rounds/s" if speed else ""
        self.progress.update(self.task, completed=record.round, **fields)

    def on_end(self) -> None:
        """Tell the bar for all runs, as the run may have stopped early."""
        self.runs.ended(self.name)
