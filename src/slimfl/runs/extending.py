"""Give runs another number of rounds, as if they had been started with it.

A run may then go on after its last round. It keeps the numbers of a run that had this length from
the beginning; where it could not, it is refused.
"""

from collections.abc import Iterable

from slimfl.errors import RequestError
from slimfl.experiment import Experiment
from slimfl.runs.loop import finished
from slimfl.runs.storage.record import RoundRecord
from slimfl.runs.storage.run_folder import RunFolder


def extend(folders: Iterable[RunFolder], rounds: int) -> list[str]:
    """Write a number of rounds into run folders, or refuse it before any of them has changed.

    Returns a sentence about every run that has ended early and stays so.
    """
    folders = list(folders)
    for folder in folders:
        extended(folder, rounds)
    for folder in folders:
        folder.change_rounds(rounds)
    return [remark for folder in folders if (remark := _ended_early(folder)) is not None]


def extended(folder: RunFolder, rounds: int) -> Experiment:
    """The experiment of a run with another number of rounds, if its rounds so far stay the same."""
    asked, lines = folder.experiment(), folder.intact_metrics().lines
    longer = folder.with_rounds(rounds)
    rounds = longer.rounds
    if rounds == asked.rounds:
        return longer
    done, where = len(lines), f"{folder.path} cannot have {rounds} rounds"
    if rounds < done:
        raise RequestError(f"{where}: it has already done {done}; give {done} or more")
    if asked.training.schedule == "cosine":
        raise RequestError(
            f"{where}: with the cosine schedule the learning rate of every round depends on their "
            f"number, which was {asked.rounds}; start a new run with --rounds {rounds}"
        )
    if rounds == done and not lines[-1].accuracy:
        raise RequestError(f"{where}: its last round would have no test; give {done + 1} or more")
    may_stop = asked.federation.stop_on_convergence or asked.callbacks
    if done == asked.rounds and not asked.federation.tests(done) and may_stop:
        raise RequestError(
            f"{where}: round {done} was tested only because it was the last, and what ends this "
            f"run may depend on that test; start a new run with --rounds {rounds}"
        )
    return longer


def _ended_early(folder: RunFolder) -> str | None:
    asked, lines = folder.experiment(), folder.intact_metrics().lines
    if len(lines) >= asked.rounds or not finished(asked, lines):
        return None
    return (
        f"{folder.path} ended in round {len(lines)} ({_reason(lines)}) and stays so: a run of "
        f"{asked.rounds} rounds would have ended there, too"
    )


def _reason(lines: list[RoundRecord]) -> str:
    return lines[-1].stopped_by or "convergence"
