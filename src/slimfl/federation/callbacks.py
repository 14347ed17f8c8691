"""Who watches a run. A watcher that fails is dropped; the run goes on."""

import logging
from collections.abc import Sequence
from typing import Any

from slimfl.config import Experiment

log = logging.getLogger(__name__)


class Callback:
    """Override what you need; every method does nothing by default."""

    def on_start(self, experiment: Experiment, rounds_done: int) -> None:
        """Before the first round of this process."""

    def on_round(self, line: dict[str, Any]) -> None:
        """After a round, with its line of metrics."""

    def on_end(self) -> None:
        """After the last round, also when the run failed."""


class Callbacks:
    """Calls all, survives each."""

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        self._callbacks = list(callbacks)

    def start(self, experiment: Experiment, rounds_done: int) -> None:
        """Tell all that the run begins."""
        self._call("on_start", experiment, rounds_done)

    def round(self, line: dict[str, Any]) -> None:
        """Tell all that a round is done."""
        self._call("on_round", line)

    def end(self) -> None:
        """Tell all that the run is over."""
        self._call("on_end")

    def _call(self, event: str, *arguments: Any) -> None:
        for callback in list(self._callbacks):
            try:
                getattr(callback, event)(*arguments)
            except Exception:
                name = type(callback).__name__
                log.exception("callback %s failed in %s; the run goes on without it", name, event)
                self._callbacks.remove(callback)
