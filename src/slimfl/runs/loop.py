"""Carry out a run to its end: in a folder, resuming where it stopped, or in memory.

A run may also get another number of rounds. It then keeps the numbers of a run that had this length
from the beginning; where it could not, it is refused.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, cast

from slimfl.errors import RequestError
from slimfl.experiment import Experiment
from slimfl.files import open_plain
from slimfl.runs import own
from slimfl.runs.callbacks import Callback, Callbacks
from slimfl.runs.converged import convergence
from slimfl.runs.storage.checkpoint import check_made_with
from slimfl.runs.storage.record import RoundRecord
from slimfl.runs.storage.run_folder import CHECKPOINTS, RunFolder, RunWriter
from slimfl.runs.trackers import trackers_of

if TYPE_CHECKING:
    from slimfl.round.simulation import Simulation

log = logging.getLogger(__name__)


def run(
    simulation: Simulation,
    folder: RunFolder | None = None,
    callbacks: Sequence[Callback] = (),
    *,
    until: int | None = None,
) -> list[RoundRecord]:
    """Run a simulation to its end, in a folder (resuming where it stopped) or only in memory.

    Args:
        simulation: The run, at its beginning.
        folder: Where it is kept.
        callbacks: Who watches, besides those that the experiment names.
        until: A round to stop after, even if the experiment asks for more.
    """
    experiment = simulation.experiment
    watching = Callbacks(
        [*callbacks, *simulation.setting.named_callbacks, *trackers_of(experiment, folder)]
    )
    simulation.keep_states_in(folder.path / CHECKPOINTS if folder else None)
    if folder is None:
        return _rounds(simulation, [], None, watching, until)
    with log_to(folder.path / "run.log"), folder.writing() as writer:
        lines = _go_back(simulation, folder, writer)
        if simulation.experiment.data.partition != "own":  # with own data only the devices know
            counts = simulation.setting.partition.class_counts(
                simulation.setting.dataset.train.labels, simulation.setting.dataset.classes
            )
            folder.write_partition(counts.tolist())
        if not simulation.experiment.population.is_default:
            folder.write_devices(simulation.setting.population)
        return _rounds(simulation, lines, writer, watching, until)


def _go_back(simulation: Simulation, folder: RunFolder, writer: RunWriter) -> list[RoundRecord]:
    """Restore the newest checkpoint that the intact lines reach; returns the lines up to it."""
    found = folder.intact_metrics()
    ahead = folder.checkpointed_round()
    checkpoint = folder.checkpoint(at_most=len(found.lines))
    if checkpoint is not None:
        simulation.state.restore(checkpoint)
    else:
        own.check_start(folder.provenance(), simulation.setting.own_objects())
    if found.damage or ahead > len(found.lines):
        reason = found.damage or f"the metrics end before the checkpoint of round {ahead}"
        way = f"continues after round {simulation.round}" if simulation.round else "starts over"
        log.warning("%s: %s; the run %s", folder.path, reason, way)
    return writer.keep_until(simulation.round)


def finished(experiment: Experiment, lines: list[RoundRecord], until: int | None = None) -> bool:
    """True if these are all rounds of a run."""
    section = experiment.federation
    if section.stop_on_convergence and convergence(lines, section) is not None:
        return True
    if lines and lines[-1].stopped_by is not None:
        return True
    return len(lines) >= (experiment.rounds if until is None else until)


def completed(
    folder: RunFolder,
    experiment: Experiment,
    *,
    until: int | None = None,
    verify: bool = False,
) -> bool:
    """True if a run folder has all its rounds and the checkpoint of the last one.

    With `verify` the checkpoint is also read and checked, which takes longer.
    """
    found = folder.intact_metrics()
    rounds = len(found.lines)
    if found.damage or not finished(experiment, found.lines, until):
        return False
    if folder.checkpointed_round() != rounds:
        return False
    if not verify:
        return True
    checkpoint = folder.checkpoint()
    if checkpoint is None or checkpoint.round != rounds:
        return False
    check_made_with(checkpoint, experiment, folder.provenance()["data_sha256"])
    return True


def _rounds(
    simulation: Simulation,
    lines: list[RoundRecord],
    writer: RunWriter | None,
    callbacks: Callbacks,
    until: int | None,
) -> list[RoundRecord]:
    experiment, privacy = simulation.experiment, simulation.setting.privacy
    if privacy is not None:
        privacy.begin(experiment.data, writer.path if writer else None)
    callbacks.start(experiment, len(lines), lines)
    try:
        while not finished(experiment, lines, until):
            record = simulation.step()
            # before anything is written, so that the answer is stored with the round
            stopped_by = callbacks.round(record, lambda: simulation.global_model.copy())
            if stopped_by is not None:
                record = record.model_copy(update={"stopped_by": stopped_by})
            lines.append(record)
            if writer is not None:
                writer.append(record)
                last = finished(experiment, lines, until)
                if last or simulation.round % experiment.federation.checkpoint_every == 0:
                    writer.checkpoint(simulation.state.checkpoint())
    except BaseException as error:
        callbacks.failed(error)
        raise
    finally:
        callbacks.end()
    return lines


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
    why = lines[-1].stopped_by or "convergence"
    return (
        f"{folder.path} ended in round {len(lines)} ({why}) and stays so: a run of "
        f"{asked.rounds} rounds would have ended there, too"
    )


@contextmanager
def log_to(path: Path) -> Iterator[None]:
    """Append what the package logs to a file."""
    if os.path.lexists(path):  # refuse a link before the run begins, not at the first warning
        open_plain(path, "a").close()
    handler = _Handler(path, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("slimfl")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()


class _Handler(logging.FileHandler):
    def _open(self) -> TextIOWrapper:
        return cast(TextIOWrapper, open_plain(Path(self.baseFilename), "a"))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """A log that cannot be written, on a full disk for example, does not end the run."""

    def close(self) -> None:
        try:
            super().close()
        except OSError:  # the last entries did not fit on the disk
            self.stream = None
