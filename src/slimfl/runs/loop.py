"""Carry out a run to its end: in a folder, resuming where it stopped, or in memory."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from slimfl.experiment import Experiment
from slimfl.runs import own
from slimfl.runs.callbacks import Callback, Callbacks
from slimfl.runs.converged import convergence
from slimfl.runs.storage.checkpoint import check_fits, named_sizes
from slimfl.runs.storage.record import RoundRecord
from slimfl.runs.storage.run_folder import CHECKPOINTS, RunFolder, RunWriter
from slimfl.runs.storage.run_log import log_to
from slimfl.runs.trackers import trackers

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

    `until` is a round to stop after, even if the experiment asks for more.
    """
    experiment = simulation.experiment
    watching = Callbacks(
        [*callbacks, *simulation.setting.named_callbacks, *trackers(experiment, folder)]
    )
    simulation.keep_states_in(folder.path / CHECKPOINTS if folder else None)
    if folder is None:
        if simulation.setting.privacy is not None:
            simulation.setting.privacy.begin(experiment.data, None)
        return _rounds(simulation, [], None, watching, until)
    with log_to(folder.path / "run.log"), folder.writing() as writer:
        lines = _go_back(simulation, folder, writer)
        if simulation.setting.privacy is not None:
            simulation.setting.privacy.begin(experiment.data, folder.path)
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
    data_sha256 = folder.provenance()["data_sha256"]
    counts = folder.class_counts()
    sizes = named_sizes(experiment, len(counts[0])) if counts else []
    check_fits(checkpoint, experiment, data_sha256, sizes)
    return True


def _rounds(
    simulation: Simulation,
    lines: list[RoundRecord],
    writer: RunWriter | None,
    callbacks: Callbacks,
    until: int | None,
) -> list[RoundRecord]:
    experiment = simulation.experiment
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
