"""One run of a grid: begin or resume it, and run it to its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from slimfl.errors import RequestError
from slimfl.experiment import Experiment, FederationSection, FlowerSection
from slimfl.round import Callback, RunFolder, completed
from slimfl.round import run as run_simulation
from slimfl.runs.storage.run_folder import EXPERIMENT, METRICS
from slimfl.runs.sweeps.datasets import shared_dataset

#: Number of training images of the named datasets, to compare epochs with steps.
_IMAGES = 60_000


@dataclass(frozen=True)
class Job:
    """An experiment and the folder in which it is run."""

    folder: Path
    experiment: Experiment
    until: int | None = None
    """Stop after this round, even if the experiment asks for more. The folder may have more or
    fewer rounds, and an experiment that differs only in its length (`beginning`)."""

    @property
    def rounds(self) -> int:
        """The last round of the job."""
        return self.experiment.rounds if self.until is None else self.until

    @property
    def name(self) -> str:
        """A readable name."""
        return self.folder.name

    @property
    def effort(self) -> float:
        """Work per round, which weights jobs on a progress bar."""
        one = self.experiment
        trained = [w for w in one.model.widths if one.method in ("slimfl", f"vanilla-{w}x")]
        training = one.training
        # an epoch covers the whole dataset, however many devices share it
        images = _IMAGES * (training.epochs or 1)
        if training.steps is not None:
            images = one.federation.devices * training.batch_size * training.steps
        return images * sum(width**2 for width in trained or one.model.widths)

    @property
    def rounds_done(self) -> int:
        """Number of complete rounds on disk."""
        try:
            return (self.folder / METRICS).read_bytes().count(b"\n")
        except OSError:
            return 0


def complete(job: Job, callbacks: Sequence[Callback] = ()) -> None:
    """Run a job to its end in this process."""
    from slimfl.round import Simulation  # imports torch, which other uses of a job do not need

    if (job.folder / EXPERIMENT).exists():
        if is_complete(job, verify=True):
            return
        folder = RunFolder.open(job.folder)
        experiment = _fitting(job, folder)
        sim = Simulation(experiment, dataset=shared_dataset(experiment))
        sim.setting.check_provenance(folder.provenance())
    else:
        sim = Simulation(job.experiment, dataset=shared_dataset(job.experiment))
        folder = RunFolder.create(job.folder, sim.experiment, sim.setting.provenance())
    run_simulation(sim, folder, callbacks, until=job.until)


def is_complete(job: Job, *, verify: bool = False) -> bool:
    """True if a job is complete; with `verify` its last checkpoint is also read."""
    if not (job.folder / EXPERIMENT).exists():
        return False
    folder = RunFolder.open(job.folder)
    return completed(folder, _fitting(job, folder), until=job.until, verify=verify)


def _fitting(job: Job, folder: RunFolder) -> Experiment:
    """The experiment in a job's folder, which must be the job's except for settled values.

    The job's data folder takes precedence, as the data may have moved since the run began.
    """
    held = folder.experiment()
    whole = _asked(held) == _asked(job.experiment)
    if not whole and (job.until is None or not same_rounds(held, job.experiment)):
        raise RequestError(
            f"{folder.path} has a run of another experiment; move it away, or choose another folder"
        )
    where = job.experiment.data.dir or held.data.dir
    return held.model_copy(update={"data": held.data.model_copy(update={"dir": where})})


def beginning(experiment: Experiment) -> Experiment:
    """An experiment without its length: everything that its rounds depend on.

    Two experiments with the same beginning have the same rounds, up to the shorter one's end. Only
    a cosine schedule depends on the number of rounds.
    """
    if experiment.training.schedule == "cosine":
        return experiment
    section = experiment.federation
    free = {"checkpoint_every"}
    if not section.stop_on_convergence:
        free |= {"convergence_window", "convergence_accuracy", "convergence_deviation"}
    defaults = {key: FederationSection.model_fields[key].default for key in free}
    return experiment.model_copy(
        update={
            "rounds": Experiment.model_fields["rounds"].default,
            "federation": section.model_copy(update=defaults),
        }
    )


def same_rounds(one: Experiment, other: Experiment) -> bool:
    """True if two experiments have the same rounds, up to the shorter one's end."""
    return _asked(beginning(one)) == _asked(beginning(other))


def _asked(experiment: Experiment) -> Experiment:
    """An experiment without values that depend on the machine."""
    here = {"engine": "auto", "device": None, "threads": None, "track": ()}
    data = experiment.data.model_copy(update={"dir": None})
    return experiment.model_copy(update={**here, "flower": FlowerSection(), "data": data})
