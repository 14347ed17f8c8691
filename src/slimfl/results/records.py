"""The contents of a run folder, read once: the only access of reports to runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slimfl.devices import Population
from slimfl.errors import RequestError
from slimfl.experiment import Experiment
from slimfl.methods import method_names
from slimfl.round import RoundRecord, RunFolder
from slimfl.runs import own as own_objects
from slimfl.runs.storage.run_folder import EXPERIMENT

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class RunRecord:
    """One run: one method with one seed."""

    path: Path
    experiment: Experiment
    provenance: dict[str, Any]
    """Versions and the checksum of the data."""
    lines: list[RoundRecord]
    """One per round, in order."""
    class_counts: list[list[int]]
    """Samples [device][class]; empty before the run has begun."""

    @cached_property
    def devices(self) -> Population | None:
        """The devices; None if all are identical or the run has not begun."""
        return RunFolder(self.path).devices()

    @property
    def own(self) -> own_objects.Given:
        """Name and fingerprint of every object that the author passed instead of a name."""
        return own_objects.recorded(self.provenance) or {}

    @property
    def dataset_name(self) -> str:
        """The dataset as the experiment names it, or as its author named an object."""
        return self.own.get("dataset", {}).get("name", self.experiment.data.dataset)

    @cached_property
    def rounds(self) -> DataFrame:
        """One row per round, by its number; see `frames.rounds_of`."""
        from slimfl.results.frames import rounds_of

        return rounds_of(self)

    @property
    def evaluated(self) -> list[RoundRecord]:
        """The lines of evaluated rounds."""
        return [line for line in self.lines if line.accuracy]

    @property
    def width_names(self) -> list[str]:
        """The names of all widths of the network, narrowest first."""
        return [f"{width}x" for width in self.experiment.model.widths]


def load(path: Path) -> RunRecord:
    """The record of one run folder."""
    folder = RunFolder.open(path)
    return RunRecord(
        path,
        folder.experiment(),
        folder.provenance(),
        folder.metrics(),
        folder.class_counts(),
    )


def find(paths: Iterable[Path]) -> list[RunRecord]:
    """The runs at the given paths: each a run folder, or a folder that holds run folders.

    The given order is kept. Inside a folder, SlimFL comes first, then Vanilla FL by width, then the
    rest by name, each by seed. A run named twice is read once. Files beside folders are skipped: a
    pattern of the shell such as runs/first/* names the report, too.
    """
    records: dict[Path, RunRecord] = {}
    given = [Path(path) for path in paths]
    folders = [path for path in given if not path.is_file()]
    for path in folders or given:
        for record in _at(path):
            records.setdefault(record.path.resolve(), record)
    if not records:
        raise RequestError("there is nothing to report; give at least one run folder")
    return list(records.values())


def _at(path: Path) -> list[RunRecord]:
    if (path / EXPERIMENT).is_file():
        return [load(path)]
    if not path.exists():
        raise RequestError(f"there is no folder {path}; give the path of a run folder")
    if not path.is_dir():
        raise RequestError(f"{path} is a file; give the folder of the run")
    inside = [load(entry) for entry in sorted(path.iterdir()) if (entry / EXPERIMENT).is_file()]
    if not inside:
        raise RequestError(
            f"{path} is not a run folder and contains none; give a folder with an {EXPERIMENT}, or "
            "one that contains such folders"
        )
    return sorted(inside, key=_reading_order)


def _reading_order(record: RunRecord) -> tuple[int, str, int]:
    experiment = record.experiment
    known = method_names(experiment.model.widths)
    rank = known.index(experiment.method) if experiment.method in known else len(known)
    return rank, experiment.method, experiment.seed
