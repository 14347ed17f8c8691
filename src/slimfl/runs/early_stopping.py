"""End a run whose accuracy no longer improves."""

from collections.abc import Callable, Sequence

from slimfl.errors import RequestError
from slimfl.experiment import Experiment
from slimfl.nn import Vector
from slimfl.runs.callbacks import Callback
from slimfl.runs.storage.record import RoundRecord


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
