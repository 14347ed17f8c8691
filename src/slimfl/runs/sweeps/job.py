"""A run in its folder: begin or resume it, and run it to its end; and a folder of such runs."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import slimfl.round
from slimfl.data import Dataset, load_section
from slimfl.errors import RequestError
from slimfl.experiment import DataSection, Experiment, same_experiment, same_rounds
from slimfl.files import open_regular, own_folder, remove_leftovers
from slimfl.round import Callback, RunFolder, completed
from slimfl.round import run as run_simulation
from slimfl.runs.storage.run_folder import EXPERIMENT, METRICS, disk_errors, only_writer, open_file

if TYPE_CHECKING:
    from slimfl.engines import ChooseEngine
    from slimfl.round import Simulation

#: Number of training images of the named datasets, to compare epochs with steps.
_IMAGES = 60_000

#: Maximum length of a name: disks allow 255 bytes, and temporary files add to it.
LONGEST = 200


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
            # a FIFO in a folder from a stranger would be waited for
            with open_regular(self.folder / METRICS) as file:
                return sum(part.count(b"\n") for part in iter(partial(file.read, 1 << 20), b""))
        except OSError:
            return 0


def complete(
    job: Job,
    callbacks: Sequence[Callback] = (),
    *,
    simulation: Simulation | None = None,
    parts: Mapping[str, Any] | None = None,
    engine: ChooseEngine | None = None,
) -> Simulation | None:
    """Begin or resume a run in its folder, up to its end.

    Args:
        job: The run.
        callbacks: Who watches it.
        simulation: The run itself, if the caller has built it already.
        parts: Objects in place of what the experiment names, as `Simulation` takes them.
        engine: Chooses the arithmetic; by the experiment when absent.

    Returns:
        The simulation at its end; None if the run was complete.
    """
    if (job.folder / EXPERIMENT).exists():
        folder = RunFolder.open(job.folder)
        experiment = _fitting(job, folder)
        if not parts and completed(folder, experiment, until=job.until, verify=True):
            return None
        made = simulation or simulation_of(experiment, parts, engine)
        made.setting.check_provenance(folder.provenance())
    else:
        made = simulation or simulation_of(job.experiment, parts, engine)
        folder = RunFolder.create(job.folder, made.experiment, made.setting.provenance())
    run_simulation(made, folder, callbacks, until=job.until)
    return made


def simulation_of(
    experiment: Experiment,
    parts: Mapping[str, Any] | None = None,
    engine: ChooseEngine | None = None,
) -> Simulation:
    """Build a run, with its data shared with the other runs of this process."""
    given = {"dataset": None, **experiment.own_parts(), **(parts or {})}
    dataset = given.pop("dataset") or shared_dataset(experiment)
    chosen: dict[str, Any] = {} if engine is None else {"engine": engine}
    return slimfl.round.Simulation(experiment, dataset=dataset, **chosen, **given)


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
    whole = same_experiment(held, job.experiment)
    if not whole and (job.until is None or not same_rounds(held, job.experiment)):
        raise RequestError(
            f"{folder.path} has a run of another experiment; move it away, or choose another folder"
        )
    where = job.experiment.data.dir or held.data.dir
    return held.model_copy(update={"data": held.data.model_copy(update={"dir": where})})


def shared_dataset(experiment: Experiment) -> Dataset:
    """The dataset of an experiment; the last two are cached for the next runs."""
    distribution = {"partition", "alpha", "min_samples", "shards_per_device", "normalise"}
    return _load(experiment.data.model_dump_json(exclude=distribution))


@lru_cache(maxsize=2)
def _load(content: str) -> Dataset:
    return load_section(DataSection.model_validate_json(content))


def run_name(words: Sequence[str]) -> str:
    """The folder name of a run, from words that may contain any characters.

    If characters had to be replaced, a hash makes the name unique.

    >>> run_name(["slimfl", "data.alpha=0.1", "seed0"])
    'slimfl-data.alpha=0.1-seed0'
    >>> run_name(["slimfl", "data.dataset=../x", "seed0"])
    'slimfl-data.dataset=.._x-seed0-1e3b3ace'
    """
    text = "-".join(words)
    safe = re.sub(r"[^\w.,=+-]", "_", text, flags=re.ASCII).lstrip(".-")[:LONGEST]
    if safe == text:
        return text
    return f"{safe}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


@contextmanager
def new_group(group: Path) -> Iterator[None]:
    """Create a folder for runs if necessary, and keep other processes out of it."""
    if (group / EXPERIMENT).exists():
        raise RequestError(f"{group} is a single run, not a folder of runs; choose another --out")
    with disk_errors(group, "and give the same command again"):
        group.mkdir(parents=True, exist_ok=True)
    with _held(group):
        _remove_leftovers(group)
        yield


@contextmanager
def existing_group(group: Path) -> Iterator[list[RunFolder]]:
    """Keep other processes out of a group; gives its runs."""
    if (group / EXPERIMENT).is_file():
        yield [RunFolder.open(group)]  # a single run, which has its own lock
        return
    if not group.exists():
        raise RequestError(f"there is no folder {group}; give the path of a run folder")
    if not group.is_dir():
        raise RequestError(f"{group} is a file; give the folder of the run")
    with _held(group):
        _remove_leftovers(group)
        inside = [at for at in sorted(group.iterdir()) if (at / EXPERIMENT).is_file()]
        for at in inside:
            own_folder(at)
        if not inside:
            raise RequestError(
                f"{group} is not a run folder and contains none, so there is nothing to resume; "
                "use `slimfl run`"
            )
        yield [RunFolder(at) for at in inside]


def _remove_leftovers(group: Path) -> None:
    # of killed processes; a link below a group may lead to other people's files
    for folder in (group, *(at for at in group.iterdir() if not at.is_symlink())):
        remove_leftovers(folder, ".+")


@contextmanager
def _held(group: Path) -> Iterator[None]:
    # lock the folder itself, which leaves no file behind
    with (
        open_file(group.resolve(), os.O_RDONLY | os.O_DIRECTORY) as descriptor,
        only_writer(descriptor, group),
    ):
        yield
