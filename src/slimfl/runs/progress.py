"""Progress of a run: a bar in a terminal, a line in a notebook, a few lines in a log."""

from __future__ import annotations

import html
import sys
from collections.abc import Callable
from typing import Any, Protocol

from slimfl.experiment import Experiment
from slimfl.nn import Vector
from slimfl.round import Callback, RoundRecord

#: Number of lines that a run writes into a log.
LINES = 10


class Display(Protocol):
    """Where progress is shown."""

    def show(self, done: float, total: float, text: str) -> None:
        """Show that `done` of `total` is complete."""

    def close(self) -> None:
        """End the display."""


class ProgressCallback(Callback):
    """Shows rounds and accuracies."""

    def __init__(self, display: Display | None = None) -> None:
        self._given, self._display = display, display
        self._name, self._rounds, self._tested = "", 0, ""

    def on_start(self, experiment: Experiment, rounds_done: int) -> None:
        """Show where the run starts or resumes."""
        self._display = self._given or display()
        self._name, self._rounds = f"{experiment.method}, seed {experiment.seed}", experiment.rounds
        self._tested = ""
        self._show(rounds_done)

    def on_round(self, record: RoundRecord, model: Callable[[], Vector]) -> None:
        """Show that a round is done."""
        if record.accuracy:
            self._tested = ", ".join(f"{w} {a:.1%}" for w, a in record.accuracy.items())
        self._show(record.round)

    def on_end(self) -> None:
        """Leave the last state on the screen."""
        if self._display is not None:
            self._display.close()

    def _show(self, round: int) -> None:
        if self._display is not None:
            text = f"{self._name}: round {round} of {self._rounds}"
            self._display.show(
                round, self._rounds, f"{text}, {self._tested}" if self._tested else text
            )


def display() -> Display:
    """The display for this process: notebook, terminal or log."""
    if _in_notebook():
        return _Notebook()
    return _Terminal() if sys.stderr.isatty() else _Log()


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
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            BarColumn(bar_width=20),
            TextColumn("{task.description}", markup=False),
            TimeRemainingColumn(),
            console=Console(stderr=True),
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
    """A line now and then, for logs."""

    def __init__(self) -> None:
        self._said = -1

    def show(self, done: float, total: float, text: str) -> None:
        """Write a line after every tenth of the run."""
        tenth = int(LINES * done / total) if total else LINES
        if tenth > self._said:
            self._said = tenth
            print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Nothing is open."""
