"""Not in the paper: choices that no source settles, and their effect on accuracy."""

from __future__ import annotations

from typing import Any

from lab.reproduction.cells.cell import Cell, cell
from lab.reproduction.cells.scale import Scale
from lab.reproduction.exhibits.exhibit import Exhibit, Recipe, Runs, Table, final, shown

ALPHA = 1.0
WIDTHS = ("0.5x", "1.0x")
#: So poor that in one of six rounds no device delivers the right half.
EXTREME_DBM = -34.0
#: Changes to the project's defaults, and what to compare each with.
CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "as everywhere else": ({}, ""),
    "PyTorch's own initialisation": ({"model__initialisation": "torch"}, "as everywhere else"),
    "moments begun anew": ({"training__optimiser_state": "fresh"}, "as everywhere else"),
    "batches of 64, as many images": ({"training__batch_size": 64}, "as everywhere else"),
    "averaged by samples": ({"federation__average": "samples"}, "as everywhere else"),
    "extremely poor channel": ({"radio__noise_dbm": EXTREME_DBM}, "as everywhere else"),
    "extremely poor channel, missing = zero": (
        {"radio__noise_dbm": EXTREME_DBM, "federation__missing": "zero"},
        "extremely poor channel",
    ),
}  # fmt: skip


def setting(scale: Scale, name: str) -> list[Cell]:
    """One choice with every seed."""
    changes = dict(CHANGES[name][0])
    if "training__batch_size" in changes and scale.steps is not None:
        steps = scale.steps * 16 / changes["training__batch_size"]
        changes["training__steps"] = max(1, round(steps))
    return [cell(scale, alpha=ALPHA, seed=s, **changes) for s in range(scale.seeds_elsewhere)]


def cells(scale: Scale) -> list[Cell]:
    """All runs."""
    return [c for name in CHANGES for c in setting(scale, name)]


def _erased(scale: Scale, runs: Runs) -> list[str]:
    """Since which round the right half is erased, if both widths agree from then on."""
    notes = []
    for record in shown(runs, setting(scale, "extremely poor channel, missing = zero")):
        erased = [line.round for line in record.lines if line.delivered[-1] == 0]
        after = [line for line in record.evaluated if erased and line.round >= erased[0]]
        if after and all(len(set(line.accuracy.values())) == 1 for line in after):
            notes.append(
                f"With missing = zero, no device delivered the right half in round {erased[0]}, "
                "and both widths have the same accuracy since then: what was erased cannot learn "
                "any more, because without biases, channels of zeros pass on zeros and have no "
                "gradient."
            )
    return notes


def show(scale: Scale, runs: Runs) -> Exhibit:
    """Final accuracy with each choice, and its difference from what it is compared with."""
    finals = {
        (name, width): final(runs, setting(scale, name), width, scale.last_rounds(ALPHA))
        for name in CHANGES
        for width in WIDTHS
    }
    rows = []
    for name, (_, against) in CHANGES.items():
        row = [name]
        for width in WIDTHS:
            own, other = finals[name, width], finals.get((against, width))
            row.append(str(own or "not run"))
            row.append(f"{(own - other).mean:+.1f}" if own and other else "")
        rows.append(row)
    return Exhibit(
        name="choices",
        title="What no source settles",
        paper="The paper gives no batch size, initialisation, treatment of Adam's moments or "
        "weighting of devices, and its algorithm 2 erases what no device delivered.",
        table=Table(["choice", "0.5x, %", "points", "1.0x, %", "points"], rows),
        claims=[],
        notes=[
            "SlimFL, poor channel, α = 1. The paper makes no claim here, so there is no verdict. "
            "On the poor channel ten devices never all fail to deliver a segment, so `missing` is "
            f"compared at {EXTREME_DBM:g} dBm.",
            *_erased(scale, runs),
            scale.shortened,
        ],
    )


CHOICES = Recipe("choices", cells, show)
