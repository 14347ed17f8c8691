"""One bar for many runs."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from slimfl.grids import Watcher


@contextmanager
def jobs_bar(console: Console) -> Iterator[Watcher]:
    """A bar over all runs, weighed by their work, with the time left."""
    with Progress(
        TextColumn("{task.fields[runs]}"),
        BarColumn(bar_width=None),
        TextColumn("{task.percentage:.1f}%"),
        TimeRemainingColumn(),
        console=console,
        expand=True,
        disable=not (sys.stdout.isatty() and console.is_terminal),
        speed_estimate_period=600,
    ) as progress:
        task = progress.add_task("", total=None, runs="")

        def watch(done: float, total: float, finished: int, runs: int) -> None:
            told = f"{finished} of {runs} runs"
            progress.update(task, completed=done, total=total, runs=told)

        yield watch
