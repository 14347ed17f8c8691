"""Not in the paper: which reading of its open points comes closest to its Vanilla FL.

The paper's Vanilla FL is far below ours for very uneven data and a poor channel. Each reading
changes one thing for all methods, and its distance from the column of table III shows how well it
explains the paper as a whole: a reading that also harms SlimFL explains nothing.

There are 60 runs of this study, so that its images have half their sides and it reads 100 rounds:
a sixth of the work of table III's runs, at the accuracy that the paper reports.
"""

from __future__ import annotations

import math
from typing import Any

from slimfl.reproduction import paper
from slimfl.reproduction.cells.cell import Cell, cell
from slimfl.reproduction.cells.scale import Scale
from slimfl.reproduction.exhibits import table3_runs as grid
from slimfl.reproduction.exhibits.exhibit import (
    UNFINISHED,
    Exhibit,
    Final,
    Recipe,
    Runs,
    Table,
    final,
)

ALPHA, CHANNEL = 0.1, "poor"
#: Beyond the smallest scales: rounds, and by what the sides of images are divided.
ROUNDS, DOWNSCALE = 100, 2
#: The changes of each reading to the project's defaults.
READINGS: dict[str, dict[str, Any]] = {
    "as everywhere else": {},
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


def setting(scale: Scale, reading: str, method: str) -> list[Cell]:
    """One reading of one method with every seed."""
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


def show(scale: Scale, runs: Runs) -> Exhibit:
    """Every accuracy of the column with each reading, and its distance from the paper's."""
    printed = paper.TABLE3[CHANNEL, ALPHA]
    rows = [["the paper", *(f"{printed[' '.join(c)][0]:g}" for c in grid.CURVES), "", ""]]
    last = scale.last_rounds(ALPHA) if scale.quick_look else round(ROUNDS * scale.last_share)
    for reading in READINGS:
        finals = [
            final(runs, setting(scale, reading, method), width, last)
            for method, width in grid.CURVES
        ]
        seeds = max((each.seeds for each in finals if each), default=0)
        words = [str(each or "not run") for each in finals]
        rows.append([reading, *words, _distance(finals), str(seeds or "")])
    names = [f"{grid.NAMES[curve]}, %" for curve in grid.CURVES]
    return Exhibit(
        name="vanilla",
        title="Readings that could explain the paper's Vanilla FL",
        paper="On the poor channel at α = 0.1 table III has 39 ± 8.3 for Vanilla FL-0.5x and "
        "55 ± 9.2 for Vanilla FL-1.0x, below SlimFL's 56 ± 2.4 and 65 ± 2.9.",
        table=Table(["reading", *names, "distance, points", "seeds"], rows),
        claims=[],
        notes=[
            f"Poor channel, α = {ALPHA:g}. The distance is the root of the mean squared difference "
            "between the four accuracies and the paper's; it is given once all four were run. "
            "Each reading changes one thing for all methods.",
            scale.shortened
            if scale.quick_look
            else f"{ROUNDS} rounds of the paper's local work with images of half their sides; a "
            f"final accuracy is the mean over the last {last} rounds.",
        ],
    )


def distance(finals: list[Final]) -> float:
    """Root-mean-square difference between the four accuracies and the paper's column, in points."""
    printed = [paper.TABLE3[CHANNEL, ALPHA][" ".join(curve)][0] for curve in grid.CURVES]
    squares = [(one.mean - theirs) ** 2 for one, theirs in zip(finals, printed, strict=True)]
    return math.sqrt(sum(squares) / len(squares))


def _distance(finals: list[Final | None]) -> str:
    known = [each for each in finals if each]
    if len(known) < len(finals):
        return "not run"
    mark = "" if all(each.finished for each in known) else UNFINISHED
    return f"{distance(known):.1f}{mark}"


VANILLA = Recipe("vanilla", cells, show, study=True)
