"""Not in the paper: which reading of its open points comes closest to its Vanilla FL.

The paper's Vanilla FL is far below ours for very uneven data and a poor channel. Each reading
changes one thing for all methods, and its distance from the column of table III shows how well it
explains the paper as a whole: a reading that also harms SlimFL explains nothing.

There are 60 runs of this study, so that its images have half their sides and it reads 100 rounds:
a sixth of the work of table III's runs, at the accuracy that the paper reports.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lab.reproduction import paper
from lab.reproduction.cells.cell import Cell, cell
from lab.reproduction.cells.scale import Scale
from lab.reproduction.exhibits import table3_runs as grid
from lab.reproduction.exhibits.exhibit import (
    UNFINISHED,
    Exhibit,
    Final,
    Recipe,
    Runs,
    Table,
    final,
    same_seeds,
)

ALPHA, CHANNEL = 0.1, "poor"
#: Beyond the smallest scales: rounds, and by what the sides of images are divided.
ROUNDS, DOWNSCALE = 100, 2
USUAL = "as everywhere else"
#: The changes of each reading to the project's defaults.
READINGS: dict[str, dict[str, Any]] = {
    USUAL: {},
    "mean over all K, absent devices as the old model": {"federation__absent": "old"},
    "mean over all K, absent devices as zero": {"federation__absent": "zero"},
    "moments reset every round": {"training__optimiser_state": "fresh"},
    "batches of 64": {"training__batch_size": 64},
    "PyTorch's own initialisation": {"model__initialisation": "torch"},
    "no normalisation of the inputs": {"data__normalise": "plain"},
    "learning rate 0.01": {"training__learning_rate": 0.01},
    "learning rate 0.0001": {"training__learning_rate": 0.0001},
    "downloads fade as well, and who misses one goes on from its own last model": {
        "radio__downlink": "lossy",
        "radio__downlink_missed": "own-model",
    },
}

#: Readings that change Vanilla FL alone: the paper defines the mean of SlimFL in equation (6), and
#: that of Vanilla FL nowhere.
ALONE = {
    "mean over all K, absent devices as zero, in Vanilla FL alone": (
        "mean over all K, absent devices as zero"
    ),
}
NAMES = (*READINGS, *ALONE)


def setting(scale: Scale, reading: str, method: str) -> list[Cell]:
    """One reading of one method with every seed."""
    if reading in ALONE:
        reading = USUAL if method == "slimfl" else ALONE[reading]
    changes = dict(READINGS[reading])
    if not scale.quick_look:
        changes |= {"rounds": ROUNDS, "data__downscale": DOWNSCALE}
    if "training__batch_size" in changes and scale.steps is not None:
        # the same number of images in fewer steps, as in an epoch
        steps = scale.steps * 16 / changes["training__batch_size"]
        changes["training__steps"] = max(1, round(steps))
    return [
        cell(scale, method, alpha=ALPHA, channel=CHANNEL, seed=seed, **changes)
        for seed in range(scale.seeds_study)
    ]


def cells(scale: Scale) -> list[Cell]:
    """All runs; Vanilla FL first, as the question is about it."""
    methods = sorted(grid.METHODS, key=lambda method: method == "slimfl")
    return [c for m in methods for reading in READINGS for c in setting(scale, reading, m)]


@dataclass(frozen=True)
class Reading:
    """The four accuracies of one reading under the same seeds, in the order of table III."""

    name: str
    finals: list[Final | None]

    @property
    def known(self) -> list[Final]:
        """Those that were run."""
        return [each for each in self.finals if each]

    @property
    def distance(self) -> float | None:
        """Root-mean-square difference from the paper's column in points; None before all ran."""
        if len(self.known) < len(self.finals):
            return None
        return _root_mean_square([one.mean - theirs for one, (theirs, _) in self._pairs])

    @property
    def vanilla_distance(self) -> float | None:
        """The same over the two Vanilla FL alone."""
        if not all(self.finals[2:]):
            return None
        return _root_mean_square([one.mean - theirs for one, (theirs, _) in self._pairs[2:]])

    @property
    def leads(self) -> list[float | None]:
        """Points by which SlimFL is ahead of the Vanilla FL of the same width: 0.5x, 1.0x."""
        pairs = [(self.finals[i], self.finals[i + 2]) for i in (0, 1)]
        return [own.mean - other.mean if own and other else None for own, other in pairs]

    @property
    def agrees(self) -> bool:
        """True if all four agree with the paper's by the rule of the verdicts."""
        return len(self.known) == len(self.finals) and all(
            one.compare("", *theirs).agrees for one, theirs in self._pairs
        )

    @property
    def leads_alike(self) -> bool:
        """True if SlimFL is ahead at both widths, by at least half of the paper's lead."""
        pairs = zip(self.leads, _printed_leads(), strict=True)
        return all(own is not None and own >= theirs / 2 for own, theirs in pairs)

    @property
    def _pairs(self) -> list[tuple[Any, tuple[float, float]]]:
        return list(zip(self.finals, _printed(), strict=True))

    def row(self) -> list[str]:
        """As printed."""
        accuracies = [str(each or "not run") for each in self.finals]
        leads = ["not run" if each is None else f"{each:+.1f}" for each in self.leads]
        distance = "not run" if self.distance is None else f"{self.distance:.1f}"
        if self.distance is not None and not all(each.finished for each in self.known):
            distance += UNFINISHED
        seeds = max((each.seeds for each in self.known), default=0)
        return [self.name, *accuracies, *leads, distance, str(seeds or "")]


def show(scale: Scale, runs: Runs) -> Exhibit:
    """Every accuracy of the column with each reading, and its distance from the paper's."""
    last = scale.last_rounds(ALPHA) if scale.quick_look else round(ROUNDS * scale.last_share)
    readings = [
        Reading(
            name,
            same_seeds(
                [final(runs, setting(scale, name, m), width, last) for m, width in grid.CURVES]
            ),
        )
        for name in NAMES
    ]
    theirs = [mean for mean, _ in _printed()]
    leads = [f"{lead:+g}" for lead in _printed_leads()]
    rows = [["the paper", *(f"{mean:g}" for mean in theirs), *leads, "", ""]]
    names = [f"{grid.NAMES[curve]}, %" for curve in grid.CURVES]
    ahead = [f"SlimFL ahead at {width}, points" for width in ("0.5x", "1.0x")]
    return Exhibit(
        name="vanilla",
        title="Readings that could explain the paper's Vanilla FL",
        paper="On the poor channel at α = 0.1 table III has 39 ± 8.3 for Vanilla FL-0.5x and "
        "55 ± 9.2 for Vanilla FL-1.0x, below SlimFL's 56 ± 2.4 and 65 ± 2.9.",
        table=Table(
            ["reading", *names, *ahead, "distance, points", "seeds"],
            [*rows, *(each.row() for each in readings)],
        ),
        claims=[],
        notes=[
            *answer(readings),
            f"Poor channel, α = {ALPHA:g}. The distance is the root of the mean squared difference "
            "between the four accuracies and the paper's; it is given once all four were run. "
            "Each reading changes one thing, for all methods unless it says otherwise.",
            scale.shortened
            if scale.quick_look
            else f"{ROUNDS} rounds of the paper's local work with images of half their sides; a "
            f"final accuracy is the mean over the last {last} rounds.",
        ],
    )


def answer(readings: Sequence[Reading]) -> list[str]:
    """Which reading comes nearest, in sentences; nothing before there are runs."""
    measured = [each for each in readings if each.vanilla_distance is not None]
    if not measured:
        return []
    theirs = [mean for mean, _ in _printed()]
    usual = next((each for each in measured if each.name == USUAL), None)
    nearest = min(measured, key=lambda each: each.vanilla_distance or 0.0)
    means = " and ".join(f"{one.mean:.1f}" for one in nearest.known[-2:])
    said = [
        f"To the paper's Vanilla FL alone ({theirs[2]:g} and {theirs[3]:g}) the nearest reading is "
        f"“{nearest.name}” with {means}{_against(usual, nearest)}."
    ]
    whole = [each for each in measured if each.distance is not None]
    if len(whole) < len(readings):
        return [*said, f"The whole column was run with {len(whole)} of {len(readings)} readings."]
    nearest = min(whole, key=lambda each: each.distance or 0.0)
    leads = " and ".join(f"{lead:+.1f}" for lead in nearest.leads if lead is not None)
    distance = f"{usual.distance:.1f}" if usual and usual.distance is not None else "not run"
    said += [
        f"To the whole column the nearest reading is “{nearest.name}”, {nearest.distance:.1f} "
        f"points away (“{USUAL}”: {distance}). SlimFL's lead there is {leads} points; in the paper "
        f"it is {' and '.join(f'{lead:+g}' for lead in _printed_leads())}.",
        "All four accuracies agree, by the rule of the verdicts and so within the paper's large "
        f"deviations, with: {_names(each for each in whole if each.agrees)}.",
        "SlimFL is ahead at both widths, by at least half of the paper's lead, with: "
        f"{_names(each for each in whole if each.leads_alike)}.",
    ]
    both = _names(each for each in whole if each.agrees and each.leads_alike)
    return [*said, f"Both hold with: {both}."]


def _against(usual: Reading | None, nearest: Reading) -> str:
    if usual is None or usual is nearest:
        return ""
    means = " and ".join(f"{one.mean:.1f}" for one in usual.known[-2:])
    return f" (“{USUAL}”: {means})"


def _names(readings: Iterable[Reading]) -> str:
    return ", ".join(f"“{each.name}”" for each in readings) or "no reading"


def _printed_leads() -> list[float]:
    """By how many points SlimFL is ahead in the paper: 0.5x, 1.0x."""
    theirs = [mean for mean, _ in _printed()]
    return [theirs[i] - theirs[i + 2] for i in (0, 1)]


def _printed() -> list[tuple[float, float]]:
    """The paper's column: mean and deviation."""
    return [paper.TABLE3[CHANNEL, ALPHA][" ".join(curve)] for curve in grid.CURVES]


def _root_mean_square(values: Sequence[float]) -> float:
    return math.sqrt(sum(each**2 for each in values) / len(values))


VANILLA = Recipe("vanilla", cells, show, study=True)
