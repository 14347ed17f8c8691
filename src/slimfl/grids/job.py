"""One run of a grid: begin it, or go on with it, to its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from slimfl.config import Experiment, FlowerSection
from slimfl.errors import RequestError
from slimfl.federation import Callback, RunFolder, Simulation, completed
from slimfl.federation import run as run_simulation
from slimfl.federation.run_folder import EXPERIMENT, METRICS
from slimfl.grids.datasets import shared_dataset


@dataclass(frozen=True)
class Job:
    """An experiment and the folder in which it is run."""

    folder: Path
    experiment: Experiment

    @property
    def name(self) -> str:
        """What a person recognises it by."""
        return self.folder.name

    @property
    def effort(self) -> float:
        """Work of a round, to weigh jobs against each other on a progress bar."""
        one = self.experiment
        trained = [w for w in one.model.widths if one.method in ("slimfl", f"vanilla-{w}x")]
        images = one.federation.devices * one.training.batch_size * (one.training.steps or 375)
        return images * sum(width**2 for width in trained or one.model.widths)

    @property
    def rounds_done(self) -> int:
        """Whole rounds on disk."""
        try:
            return (self.folder / METRICS).read_bytes().count(b"\n")
        except OSError:
            return 0


def complete(job: Job, callbacks: Sequence[Callback] = ()) -> None:
    """Run a job to its end in this process."""
    if (job.folder / EXPERIMENT).exists():
        if is_complete(job, verify=True):
            return
        folder = RunFolder.open(job.folder)
        experiment = _fitting(job, folder)
        sim = Simulation(experiment, dataset=shared_dataset(experiment))
        sim.check_provenance(folder.provenance())
    else:
        sim = Simulation(job.experiment, dataset=shared_dataset(job.experiment))
        folder = RunFolder.create(job.folder, sim.experiment, sim.provenance())
    run_simulation(sim, folder, callbacks)


def is_complete(job: Job, *, verify: bool = False) -> bool:
    """Whether a job has nothing left to run; with `verify` its last checkpoint is also read."""
    if not (job.folder / EXPERIMENT).exists():
        return False
    folder = RunFolder.open(job.folder)
    return completed(folder, _fitting(job, folder), verify=verify)


def _fitting(job: Job, folder: RunFolder) -> Experiment:
    """The experiment in a job's folder, which must be the job's but for what a run settles.

    The job says where the data are, if it does: they may have moved since the run was begun.
    """
    held = folder.experiment()
    if _asked(held) != _asked(job.experiment):
        raise RequestError(
            f"{folder.path} holds a run of another experiment; move it away, or choose another "
            "folder"
        )
    where = job.experiment.data.dir or held.data.dir
    return held.model_copy(update={"data": held.data.model_copy(update={"dir": where})})


def _asked(experiment: Experiment) -> Experiment:
    """An experiment without what depends on the machine that runs it."""
    here = {"engine": "auto", "threads": None, "track": (), "flower": FlowerSection()}
    data = experiment.data.model_copy(update={"dir": None})
    return experiment.model_copy(update={**here, "data": data})
