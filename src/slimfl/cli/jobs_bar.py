"""One progress bar for many runs; in a log, a line now and then."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from slimfl.cli.output import duration
from slimfl.runs.sweeps import Watcher

#: Interval between two lines of a log.
LINE_EVERY_S = 600.0


@contextmanager
def jobs_bar(console: Console) -> Iterator[Watcher]:
    """A bar over all runs, weighted by their work, with the remaining time."""
    if not (sys.stdout.isatty() and console.is_terminal):
        yield progress_lines(lambda line: console.print(line, highlight=False, soft_wrap=True))
        return
    with Progress(
        TextColumn("{task.fields[runs]}"),
        BarColumn(bar_width=None),
        TextColumn("{task.percentage:.1f}%"),
        TimeRemainingColumn(),
        console=console,
        expand=True,
        speed_estimate_period=600,
    ) as progress:
        task = progress.add_task("", total=None, runs="")

        def watch(done: float, total: float, finished: int, runs: int) -> None:
            told = f"{finished} of {runs} runs"
            progress.update(task, completed=done, total=total, runs=told)

        yield watch


def progress_lines(
    say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
) -> Watcher:
    """A line every ten minutes, for logs of background jobs."""
    began: tuple[float, float] | None = None
    said = clock()

    def watch(done: float, total: float, finished: int, runs: int) -> None:
        nonlocal began, said
        now = clock()
        if began is None:
            began = now, done  # work of earlier calls does not count for the speed
        if now - said < LINE_EVERY_S:
            return
        said = now
        gained = done - began[1]
        left = "unknown"
        if gained > 0:
            left = f"about {duration((now - began[0]) * (total - done) / gained)}"
        say(f"{finished} of {runs} runs, {done / total:.1%} of the work; time left: {left}")

    return watch
