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
    from slimfl.runs.early_stopping import (
        EarlyStopping,
    )  # imported here: it imports this module

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
