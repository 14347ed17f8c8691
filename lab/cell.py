"""The cell: one run of a question, identified by what its rounds depend on.

Questions that need the same run share it, existing runs are not repeated, and a longer scale
continues the runs of a shorter one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from lab.scale import PAPER_DEVICES, PAPER_ROUNDS, Scale, StudyScale
from slimfl import experiment as config
from slimfl.experiment import Experiment, RadioSection, beginning
from slimfl.results.records import RunRecord, load
from slimfl.runs.storage.run_folder import EXPERIMENT
from slimfl.runs.sweeps import Job, Watcher, run_jobs

#: What does not change the numbers of a run: where it ran, and who watched. Similar to
#: `slimfl.experiment.identity`, but digests of this form name the folders of existing runs, so it
#: must not change.
_CIRCUMSTANCES: dict[str, bool | set[str]] = {
    "threads": True,
    "track": True,
    "flower": True,
    "data": {"dir"},
}

#: The radio keys with which segments of unequal size are sent at equal rates, as in the paper.
PAPERS_LINK = {"rates": "equal"}


@dataclass(frozen=True)
class Cell:
    """One run, and the number of rounds that a scale reads."""

    experiment: Experiment
    """As a scale reads it, with the scale's number of rounds and convergence test."""

    @cached_property
    def grown(self) -> Experiment:
        """The run itself, which one scale may begin and another continue."""
        if self.experiment.training.schedule == "cosine":
            return self.experiment
        return beginning(self.experiment).model_copy(update={"rounds": PAPER_ROUNDS})

    @cached_property
    def key(self) -> str:
        """The hash of everything that the rounds depend on, without their number.

        Keys with default values are left out, so that runs made before a key existed are found. Of
        `radio.rates`, whose default has changed, the paper's value is left out.
        """
        return _digest(beginning(self.experiment))

    @property
    def rounds(self) -> int:
        """Number of rounds that are read."""
        return self.experiment.rounds

    @property
    def words(self) -> str:
        """A readable name."""
        one = self.experiment
        return f"{one.method}-{one.radio.channel}-alpha{one.data.alpha:g}-seed{one.seed}"

    @property
    def name(self) -> str:
        """The readable name and the hash."""
        return f"{self.words}-{self.key}"

    def folder(self, cache: Path) -> Path:
        """The folder of the run, which may not exist yet.

        Folders used to be named by a hash that included the number of rounds; they are still found.
        """
        before = (_digest(self.experiment), _digest(self.grown))
        names = [self.name, *(f"{self.words}-{key}" for key in before)]
        there = (cache / name for name in names if (cache / name / EXPERIMENT).exists())
        return next(there, cache / self.name)

    def job(self, cache: Path) -> Job:
        """The run as a job in a folder of the cache, up to the last round that is read."""
        return Job(self.folder(cache), self.grown, self.rounds)

    def record(self, cache: Path) -> RunRecord | None:
        """The existing rounds up to the last that is read; None before the run has begun.

        Later rounds are left out, so that the results of a scale do not change when a run grows.
        """
        folder = self.folder(cache)
        if not (folder / EXPERIMENT).exists():
            return None
        whole = load(folder)
        asked = self.experiment.model_copy(update={"engine": whole.experiment.engine})
        return replace(whole, experiment=asked, lines=whole.lines[: self.rounds])

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and other.key == self.key


def _digest(experiment: Experiment) -> str:
    rates = experiment.radio.rates
    usual = experiment.radio.model_copy(update={"rates": RadioSection().rates})
    same = experiment.model_copy(update={"radio": usual})
    tree = same.model_dump(mode="json", exclude=_CIRCUMSTANCES, exclude_defaults=True)
    if rates != PAPERS_LINK["rates"]:
        tree["radio"] = {**tree.get("radio", {}), "rates": rates}
    tree = {key: value for key, value in tree.items() if value != {}}
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:16]


def cell(
    scale: Scale,
    method: str = "slimfl",
    *,
    alpha: float,
    seed: int,
    channel: str = "poor",
    devices: int = PAPER_DEVICES,
    **changes: Any,
) -> Cell:
    """A run at a scale; `changes` are further keys, with two underscores for the dot."""
    values: dict[str, Any] = {
        "method": method,
        "seed": seed,
        "threads": 1,
        "rounds": scale.rounds[alpha],
        "data__alpha": alpha,
        "data__test_samples": scale.test_samples,
        "radio__channel": channel,
        "federation__devices": devices,
        "federation__evaluate_every": scale.evaluate_every,
        "federation__convergence_window": scale.convergence_window,
        "federation__convergence_accuracy": scale.convergence_accuracy,
        **scale.local_work(devices),
    }
    tree: dict[str, Any] = {"radio": dict(PAPERS_LINK)}
    for layer in (values, changes):
        config.change(tree, config.asked((), _dotted(layer)))
    return Cell(config.build(tree))


def study_cell(
    scale: StudyScale, method: str, seed: int, *, rounds: int | None = None, **changes: Any
) -> Cell:
    """A run of a study; `changes` are further keys, with two underscores for the dot.

    Images have half their sides, which takes a quarter of the work. Moments begin anew in every
    round, as in the papers of all rivals, and the learning rate is three times the reproduction's,
    with which SlimFL passes 80% at alpha = 1 within 50 rounds.
    """
    values: dict[str, Any] = {
        "method": method,
        "seed": seed,
        "threads": 1,
        "rounds": scale.rounds if rounds is None else rounds,
        "data__downscale": 2,
        "data__test_samples": scale.test_samples,
        "training__steps": scale.steps,
        "training__learning_rate": 0.003,
        "training__optimiser_state": "fresh",
        "federation__evaluate_every": scale.evaluate_every,
    }
    return Cell(config.load({"radio": dict(PAPERS_LINK)}, _dotted(values | changes))[0])


def gather(
    cells: Sequence[Cell],
    cache: Path,
    archive: Path | None = None,
    *,
    on: str = "local",
    workers: int | None = None,
    run: bool = True,
    watch: Watcher | None = None,
) -> dict[Cell, RunRecord]:
    """The records of the cells; without `run`, of those that are there, finished or not.

    Runs that have more rounds in the archive than in the cache are taken from there.

    Args:
        cells: The runs.
        cache: The folder of run folders.
        archive: The folder of packed runs; nothing is taken from it when absent.
        on: Where to run: `local`, or another place of `slimfl`.
        workers: Number of parallel runs; one per core when absent.
        run: Whether to run what is missing.
        watch: Follows the runs.
    """
    from lab.archive import unpack

    if archive is not None:
        for cell in cells:
            unpack(cell, archive, cache)
    if run:
        run_jobs((cell.job(cache) for cell in cells), on, workers=workers, watch=watch)
    return {cell: record for cell in cells if (record := cell.record(cache))}


def seed_by_seed(cells: Iterable[Cell]) -> list[Cell]:
    """Every cell once: seed 0 of all settings, then the others, so that an early look has all.

    A run that is asked for with several numbers of rounds is asked for with the most.
    """
    longest: dict[str, Cell] = {}
    for cell in cells:
        if cell.key not in longest or cell.rounds > longest[cell.key].rounds:
            longest[cell.key] = cell
    return sorted(longest.values(), key=lambda cell: cell.experiment.seed)


def _dotted(values: dict[str, Any]) -> dict[str, Any]:
    return {key.replace("__", "."): value for key, value in values.items()}
