"""The progress bar of a run: accuracy of every width, rounds per second, time left."""

import sys
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from slimfl.config import Experiment
from slimfl.federation import Callback, RoundRecord
from slimfl.nn import Vector


def progress_bar(console: Console) -> Progress:
    """A bar on standard error, silent unless a person watches standard output."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[accuracy]}"),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
        console=console,
        expand=True,
        disable=not (sys.stdout.isatty() and console.is_terminal),
    )


class ProgressCallback(Callback):
    """Moves one bar of a shared display."""

    def __init__(self, progress: Progress, name: str) -> None:
        self.progress, self.name = progress, name
        self.task: TaskID | None = None

    def on_start(self, experiment: Experiment, rounds_done: int) -> None:
        """Show the bar, with the rounds of an earlier process already on it."""
        self.task = self.progress.add_task(
            self.name, total=experiment.rounds, completed=rounds_done, accuracy="", speed=""
        )

    def on_round(self, record: RoundRecord, model: Callable[[], Vector]) -> None:
        """One round further."""
        if self.task is None:
            return
        fields: dict[str, Any] = {}
        if record.accuracy:
            fields["accuracy"] = "  ".join(f"{w} {a:.1%}" for w, a in record.accuracy.items())
        speed = self.progress.tasks[self.progress.task_ids.index(self.task)].speed
        fields["speed"] = f"{speed:.2f} rounds/s" if speed else ""
        self.progress.update(self.task, completed=record.round, **fields)
