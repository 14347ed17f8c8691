"""Callbacks watch a run and may end it. One that fails is dropped, and the run goes on."""

import difflib
import logging
from collections.abc import Callable, Sequence
from typing import Any

from slimfl.errors import RequestError
from slimfl.experiment import Experiment
from slimfl.experiment.naming import construct, resolve
from slimfl.nn import Vector
from slimfl.runs.storage.record import RoundRecord

log = logging.getLogger(__name__)


class Callback:
    """Override what you need; every method does nothing by default."""

    def on_start(self, experiment: Experiment, rounds_done: int) -> None:
        """Called before the first round of this process."""

    def on_resume(self, records: Sequence[RoundRecord]) -> None:
        """Called after `on_start` when a run is resumed, with the rounds that are already done."""

    def on_round(self, record: RoundRecord, model: Callable[[], Vector]) -> bool | None:
        """Called after a round with its record; `model()` returns a copy of the global model.

        Return True to end the run after this round. It stays ended when resumed.
        """

    def on_failure(self, error: BaseException) -> None:
        """Called before `on_end` if the run failed, or was stopped by a signal."""

    def on_end(self) -> None:
        """Called after the last round, also if the run failed."""


def check_hooks(callback: Callback) -> None:
    """Refuse methods that look like ours and would never be called."""
    known = [name for name in dir(Callback) if name.startswith("on_")]
    for name in dir(callback):
        if name.startswith("on_") and name not in known and callable(getattr(callback, name)):
            near = difflib.get_close_matches(name, known, 1) or [", ".join(known)]
            raise RequestError(
                f"the callback {type(callback).__name__} has a method {name}, which is never "
                f"called; call it {near[0]}, or give it a name that does not begin with on_"
            )


class Callbacks:
    """Calls every callback and survives the errors of each."""

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        self._callbacks = list(callbacks)
        for callback in self._callbacks:
            check_hooks(callback)

    def start(
        self, experiment: Experiment, rounds_done: int, records: Sequence[RoundRecord] = ()
    ) -> None:
        """The run starts, or resumes after these rounds."""
        self._call("on_start", experiment, rounds_done)
        if records:
            self._call("on_resume", records)

    def round(self, record: RoundRecord, model: Callable[[], Vector]) -> str | None:
        """A round is done; returns the name of the callback that ends the run, if one does."""
        answers = self._call("on_round", record, model)
        return next((name for name, answer in answers if answer is True), None)

    def failed(self, error: BaseException) -> None:
        """The run ends with this error."""
        self._call("on_failure", error)

    def end(self) -> None:
        """The run is over."""
        self._call("on_end")

    def _call(self, event: str, *arguments: Any) -> list[tuple[str, Any]]:
        answers = []
        for callback in list(self._callbacks):
            name = type(callback).__name__
            try:
                answers.append((name, getattr(callback, event)(*arguments)))
            except Exception as error:
                if event == "on_start" and isinstance(error, RequestError):
                    raise  # a wrong request, and no round has been lost yet
                log.exception("callback %s failed in %s; the run goes on without it", name, event)
                self._callbacks.remove(callback)
        return answers


def named_callbacks(experiment: Experiment) -> list[Callback]:
    """The callbacks that an experiment names, built with their options."""
    builtin = {"early-stopping": EarlyStopping}
    made = [
        construct(
            "callback",
            section.name,
            resolve("callback", section.name, builtin, lambda made: issubclass(made, Callback)),
            section.options,
            key="callbacks",
        )
        for section in experiment.callbacks
    ]
    for callback in made:
        check_hooks(callback)
    return made


class EarlyStopping(Callback):
    """Stop when a width's best accuracy is `patience` rounds old.

    Args:
        patience: Rounds to wait for a better accuracy.
        width: The width that is watched, such as `0.5x`; the widest that is tested by default.
        min_improvement: How much better counts as better, as a fraction of 1.
    """

    def __init__(
        self, patience: int = 10, width: str | float | None = None, min_improvement: float = 0.0
    ) -> None:
        if isinstance(patience, bool) or not isinstance(patience, int) or patience < 1:
            raise RequestError(f"patience must be a whole number from 1, not {patience!r}")
        if not 0 <= min_improvement < 1:
            raise RequestError(
                f"min_improvement must be from 0 to below 1, not {min_improvement!r}"
            )
        self.patience, self.min_improvement = patience, min_improvement
        self.width = f"{float(width)}x" if isinstance(width, int | float) else width
        self.best, self.best_round = -1.0, 0

    def on_start(self, experiment: Experiment, rounds_done: int) -> None:
        """Reset; refuse a width that this run does not have, since it would never be tested."""
        names = [f"{width}x" for width in experiment.model.widths]
        if self.width is not None and self.width not in names:
            raise RequestError(
                f"early stopping watches the width {self.width}, but this run has "
                f"{', '.join(names)}"
            )
        self.best, self.best_round = -1.0, 0

    def on_resume(self, records: Sequence[RoundRecord]) -> None:
        """Replay earlier rounds, so that a resumed run ends where an uninterrupted one would."""
        for record in records:
            self._look(record)

    def on_round(self, record: RoundRecord, model: Callable[[], Vector]) -> bool:
        """True to stop after this round, which only a round with a test decides."""
        self._look(record)
        tested = bool(record.accuracy) and self.best >= 0
        return tested and record.round - self.best_round >= self.patience

    def _look(self, record: RoundRecord) -> None:
        if not record.accuracy:
            return
        width = self.width or list(record.accuracy)[-1]
        accuracy = record.accuracy.get(width)
        if accuracy is not None and accuracy > self.best + self.min_improvement * (self.best >= 0):
            self.best, self.best_round = accuracy, record.round
