"""The runs of the study of rivals: all methods over two populations, and what came of each.

In `cell` every device can train the full width, so HeteroFL, FedRolex, Federated Dropout and the
exclusive baseline are all Vanilla FL-1.0x there and are not run again. In `phones` half of the
devices train 0.5x at most. US-Net with two widths is SHeteroFL: the sandwich has nothing between
its narrowest and its widest, so it is not run either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from lab.reproduction.cells.cell import Cell
from lab.studies import standing
from lab.studies.scale import StudyScale
from lab.studies.standing import Standing
from lab.studies.study import Runs, finished
from slimfl.devices import population_of
from slimfl.results import RunRecord
from slimfl.results.devices import accuracy_by_device
from slimfl.results.groups import title

DEVICES = 20
ALPHA = 0.3
WIDTHS = ("0.5x", "1.0x")
PER_DEVICE = {"radio__split": "per-device", "radio__split_objective": "weighted"}


@dataclass(frozen=True)
class Entry:
    """A method as it takes part: its name, and the keys beside it."""

    name: str
    method: str
    changes: Mapping[str, Any]


def _entry(method: str, **changes: Any) -> Entry:
    return Entry(title(method), method, changes)


SLIMFL = Entry("SlimFL (split per device)", "slimfl", PER_DEVICE)
ENTRIES = {
    "cell": (
        SLIMFL,
        _entry("slimfl"),
        Entry("SlimFL (segments in turn)", "slimfl", {"radio__multiplexing": "orthogonal-energy"}),
        _entry("sheterofl"),
        _entry("fjord"),
        _entry("fjord-kd"),
        _entry("split-mix", model__name="split-mix"),
        _entry("vanilla-0.5x"),
        _entry("vanilla-1.0x"),
    ),
    "phones": (
        SLIMFL,
        _entry("slimfl"),
        Entry("SlimFL (segments in turn)", "slimfl", {"radio__multiplexing": "orthogonal-energy"}),
        _entry("sheterofl"),
        _entry("heterofl"),
        _entry("fjord"),
        _entry("fjord-kd"),
        _entry("fedrolex"),
        _entry("federated-dropout"),
        _entry("split-mix", model__name="split-mix"),
        _entry("vanilla-0.5x"),
        _entry("exclusive"),
    ),
}


#: What a population's methods are drawn over: the full width without segments.
BASELINES = {"cell": title("vanilla-1.0x"), "phones": title("exclusive")}


def runs_of(
    scale: StudyScale, population: str, entry: Entry, *, seeds: int, rounds: int
) -> list[Cell]:
    """One method in one population, under every seed.

    With twice the devices of the reproduction, each takes half the steps.
    """
    return scale.each_seed(
        entry.method,
        seeds=seeds,
        rounds=rounds,
        data__alpha=ALPHA,
        federation__devices=DEVICES,
        population__preset=population,
        training__steps=max(1, scale.steps // 2),
        **entry.changes,
    )


def rival_runs(scale: StudyScale, population: str, entry: Entry) -> list[Cell]:
    """One method in one population, as this study runs it.

    More seeds in `cell`, where differences are small; not of Split-Mix, which torch alone trains.
    """
    many = population == "cell" and entry.method != "split-mix"
    seeds = scale.rival_seeds if many else scale.seeds
    return runs_of(scale, population, entry, seeds=seeds, rounds=scale.rival_rounds)


def cells(scale: StudyScale) -> list[Cell]:
    """Every method in both populations."""
    return [c for p, entries in ENTRIES.items() for e in entries for c in rival_runs(scale, p, e)]


@dataclass(frozen=True)
class Result:
    """One method in one population."""

    entry: Entry
    by_width: dict[str, Standing]
    far: dict[str, Standing]
    """On the data of the farthest quarter of the devices, which is the same for all methods."""
    heard: float
    """Percent of all uploads whose first segment arrived."""
    uploads: dict[int, int]
    """Of the devices that send the whole model: the number of uploads by segments delivered."""
    airtime_ms: float
    """Of one upload."""
    energy_j: float
    """Sending and computing, of all devices."""
    sending_j: float
    clock_s: float

    @property
    def is_one_message(self) -> bool:
        """Whether no upload ever delivered a part of the model."""
        whole = max(self.uploads, default=0)
        return all(count in (0, whole) for count in self.uploads)


def result(scale: StudyScale, population: str, entry: Entry, runs: Runs) -> Result | None:
    """What came out; None before the first run is finished."""
    records = finished(rival_runs(scale, population, entry), runs)
    if not records:
        return None
    every = {width: standing.final_standing(entry.name, records, width) for width in WIDTHS}
    tested = {width: each for width, each in every.items() if each.by_seed}
    return Result(
        entry,
        tested,
        {width: _far(entry.name, records, width) for width in tested},
        fmean(map(_heard, records)),
        _uploads(records),
        standing.airtime_ms(records),
        fmean(map(standing.energy_j, records)),
        standing.sending_j(records),
        fmean(record.lines[-1].clock_s or 0.0 for record in records),
    )


def _heard(record: RunRecord) -> float:
    asked = sum(line.asked for line in record.lines)
    return 100 * sum(line.delivered[0] for line in record.lines) / max(asked, 1)


def _uploads(records: Sequence[RunRecord]) -> dict[int, int]:
    counts: Counter[int] = Counter()
    for record in records:
        able = population_of(record.experiment).max_width == len(WIDTHS) - 1
        for line in record.lines:
            pairs = zip(line.devices, line.decoded, strict=True)
            counts.update(decoded for device, decoded in pairs if able[device])
    return dict(sorted(counts.items()))


def _far(name: str, records: Sequence[RunRecord], width: str) -> Standing:
    found = {}
    for record in records:
        late = standing.late_tests(record, width, record.experiment.rounds)
        accuracies = accuracy_by_device(record, late).get(width)
        if accuracies is not None:
            distances = population_of(record.experiment).distance_m
            farthest = np.argsort(-distances, kind="stable")[: len(distances) // 4]
            found[record.experiment.seed] = 100 * float(np.nanmean(accuracies[farthest]))
    return Standing(name, found)
