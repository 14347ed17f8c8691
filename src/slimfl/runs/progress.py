"""How far runs are: a bar in a terminal, a line in a notebook, a few lines in a log."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from rich import progress as bars
from rich.console import Console

from slimfl.experiment import Experiment
from slimfl.nn import Vector
from slimfl.round import Callback, RoundRecord

#: Number of lines in a log, and the longest time between two of them.
LINES, LINE_EVERY_S = 10, 600.0

#: Called with (work done, total work, runs finished, number of runs).
Watcher = Callable[[float, float, int, int], None]


class Display(Protocol):
    """Where progress is shown."""

    def show(self, done: float, total: float, text: str) -> None:
        """Show that `done` of `total` is complete."""

    def close(self) -> None:
        """End the display."""


class Measured(Protocol):
    """A run whose progress is shown."""

    @property
    def name(self) -> str:
        """A readable name."""

    @property
    def effort(self) -> float:
        """Work per round."""

    @property
    def rounds(self) -> int:
        """The last round."""

    @property
    def rounds_done(self) -> int:
        """Number of complete rounds."""


class Progress:
    """The rounds of some runs as one number, weighted by their work."""

    def __init__(self, runs: Sequence[Measured], watch: Watcher | None, complete: int = 0) -> None:
        self.runs, self.watch, self.complete = list(runs), watch, complete
        self.total = sum(run.effort * run.rounds for run in runs)

    def tell(self, rounds_done: Sequence[int]) -> None:
        """Report the number of finished rounds of every run."""
        if self.watch is None:
            return
        pairs = list(zip(self.runs, rounds_done, strict=True))
        done = sum(run.effort * min(rounds, run.rounds) for run, rounds in pairs)
        finished = sum(rounds >= run.rounds for run, rounds in pairs)
        self.watch(done, self.total, self.complete + finished, self.complete + len(self.runs))


class ProgressCallback(Callback):
    """Shows the round and the accuracies of one of the runs that take turns in this process."""

    def __init__(
        self, runs: Sequence[Measured], rounds: list[int], number: int, display: Display
    ) -> None:
        self._runs, self._rounds, self._number, self._display = runs, rounds, number, display
        self._tested = ""

    def on_start(self, experiment: Experiment, rounds_done: int) -> None:
        """Show where the run starts or resumes."""
        self._show(rounds_done)

    def on_round(self, record: RoundRecord, model: Callable[[], Vector]) -> None:
        """Show that a round is done."""
        if record.accuracy:
            self._tested = "".join(f", {w} {a:.1%}" for w, a in record.accuracy.items())
        self._show(record.round)

    def _show(self, round: int) -> None:
        run = self._runs[self._number]
        self._rounds[self._number] = round
        words = f"{run.name}: round {round} of {run.rounds}{self._tested}"

        def show(done: float, total: float, finished: int, runs: int) -> None:
            before = f"{finished} of {runs} runs; " if runs > 1 else ""
            self._display.show(done, total, before + words)

        Progress(self._runs, show).tell(self._rounds)


@contextmanager
def taking_turns(
    runs: Sequence[Measured], wanted: bool = True
) -> Iterator[Callable[[int], list[Callback]]]:
    """Show runs that take turns; gives what watches the run of a number."""
    rounds = [run.rounds_done for run in runs]
    with showing(wanted) as screen:

        def watchers(number: int) -> list[Callback]:
            # what ended before its last round is done, too
            rounds[:number] = [run.rounds for run in runs[:number]]
            return [] if screen is None else [ProgressCallback(runs, rounds, number, screen)]

        yield watchers


@contextmanager
def showing(wanted: bool = True) -> Iterator[Display | None]:
    """The display for this process, closed at the end of the block."""
    screen = display() if wanted else None
    try:
        yield screen
    finally:
        if screen is not None:
            screen.close()


@contextmanager
def watching(wanted: bool = True) -> Iterator[Watcher | None]:
    """The watcher that shows many runs at once."""
    with showing(wanted) as screen:

        def watch(done: float, total: float, finished: int, runs: int) -> None:
            if screen is not None:
                share = done / (total or 1)
                screen.show(done, total, f"{finished} of {runs} runs, {share:.0%} of the work")

        yield watch if wanted else None


def display() -> Display:
    """The display for this process: notebook, terminal or log."""
    if _in_notebook():
        return _Notebook()
    return _Terminal() if sys.stderr.isatty() and sys.stdout.isatty() else _Log()


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


class _Notebook:
    """One output that is replaced; needs no widgets."""

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self._html: Callable[[str], Any] = HTML
        self._handle = display(HTML(""), display_id=True)

    def show(self, done: float, total: float, text: str) -> None:
        """Replace the bar and the text."""
        bar = f'<progress value="{done:g}" max="{total:g}" style="width:20em"></progress>'
        self._handle.update(self._html(f"{bar} {html.escape(text)}"))

    def close(self) -> None:
        """Leave the output as it is."""


class _Terminal:
    """A bar on standard error."""

    def __init__(self) -> None:
        self._progress = bars.Progress(
            bars.BarColumn(bar_width=20),
            bars.TextColumn("{task.description}", markup=False),
            bars.TimeRemainingColumn(),
            console=Console(stderr=True),
            speed_estimate_period=LINE_EVERY_S,
        )
        self._task = self._progress.add_task("", total=None)
        self._progress.start()

    def show(self, done: float, total: float, text: str) -> None:
        """Move the bar."""
        self._progress.update(self._task, completed=done, total=total, description=text)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._progress.stop()


class _Log:
    """A line per tenth of the work and per ten minutes; none for what was there before."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._at = clock, clock()
        self._said: int | None = None

    def show(self, done: float, total: float, text: str) -> None:
        """Write a line if it is time for one."""
        tenth = int(LINES * done / total) if total else LINES
        if self._said is None:
            self._said = min(tenth, LINES - 1)
        if tenth > self._said or self._clock() - self._at >= LINE_EVERY_S:
            self._said, self._at = tenth, self._clock()
            print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Nothing is open."""
