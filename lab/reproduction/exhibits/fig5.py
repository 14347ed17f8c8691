"""Figure 5: the optimal split and weights against others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lab.reproduction import paper
from lab.reproduction.cells.cell import Cell, cell
from lab.reproduction.cells.scale import Scale
from lab.reproduction.exhibits.exhibit import (
    Exhibit,
    Final,
    Recipe,
    Runs,
    Table,
    accuracy,
    curves,
    final,
    share_seeds,
)
from lab.reproduction.exhibits.panels import Line, Panel, curves_figure
from lab.reproduction.judging.verdict import Claim, Comparison
from slimfl.report.figures import colours

ALPHA = 0.1
WIDTHS = ("0.5x", "1.0x")
RATE: dict[str, Any] = {"radio__spectral_efficiency": paper.FIGURE4_BIT_S_HZ}
#: The changes of each of the four settings; the third is table III's.
SETTINGS: dict[str, dict[str, Any]] = {
    "λ = 0.662": RATE | {"radio__split": "optimal"},
    "λ = 0.8": RATE | {"radio__split": paper.OTHER_SPLIT},
    "w = 0.5, 0.5": {},
    "w = 0.3, 0.7": {"training__weights": paper.OTHER_WEIGHTS},
}


def setting(scale: Scale, name: str) -> list[Cell]:
    """One setting with every seed."""
    changes = SETTINGS[name]
    return [cell(scale, alpha=ALPHA, seed=seed, **changes) for seed in range(scale.seeds_curves)]


def cells(scale: Scale) -> list[Cell]:
    """All runs."""
    return [c for name in SETTINGS for c in setting(scale, name)]


def show(scale: Scale, runs: Runs) -> Exhibit:
    """Accuracy with the recommended and with other parameters."""
    finals = {
        (name, width): final(runs, setting(scale, name), width, scale.last_rounds(ALPHA))
        for name in SETTINGS
        for width in WIDTHS
    }
    best, other, equal, unequal = SETTINGS
    for pair in ((best, other), (equal, unequal)):
        for width in WIDTHS:
            share_seeds(finals, [(name, width) for name in pair])
    records = {
        (name, width): curves(runs, setting(scale, name), finals[name, width])
        for name in SETTINGS
        for width in WIDTHS
    }
    shades = (colours.BLUE, colours.ORANGE)
    panels = [
        Panel(
            title,
            [
                Line(f"{words}, {width}", records[name, width], width, shade, dash)
                for words, shade, name in zip(("recommended", "other"), shades, pair, strict=True)
                for width, dash in zip(WIDTHS, ("--", "-"), strict=True)
            ],
        )
        for title, pair in (
            (f"(a) {best} and 0.8", (best, other)),
            (f"(b) {equal} and 0.3, 0.7", (equal, unequal)),
        )
    ]
    return Exhibit(
        name="fig5",
        title="Figure 5: optimal against other parameters",
        paper="The optimal split gains 6.4 points at 0.5x and 8.8 at 1.0x; equal weights reach 78% "
        "where (0.3, 0.7) reaches 69%.",
        table=Table(
            ["parameters", *WIDTHS],
            [[name, *(str(finals[name, w] or "not run") for w in WIDTHS)] for name in SETTINGS],
        ),
        claims=[
            *(
                _gain(finals[best, width], finals[other, width], width, printed)
                for width, printed in zip(WIDTHS, paper.SPLIT_GAIN, strict=True)
            ),
            Claim(
                "Accuracy at 1.0x with equal weights and with (0.3, 0.7)",
                "section VI-B, figure 5(b)",
                tuple(
                    accuracy(name, each, printed)
                    for name, each, printed in zip(
                        (equal, unequal),
                        [finals[name, "1.0x"] for name in (equal, unequal)],
                        paper.WEIGHTS_ACCURACY,
                        strict=True,
                    )
                ),
                pairs=((0, 1),),
            ),
        ],
        notes=[
            "Poor channel, α = 0.1. The split is compared at 0.7375 bit/s/Hz, the rate at which "
            "0.662 is optimal; the weights at table III's rate. The paper gives neither the rate "
            "nor the channel nor the width of (b), which is read as 1.0x.",
            scale.shortened,
        ],
        figure=curves_figure(panels, 2),
    )


def _gain(first: Final | None, second: Final | None, width: str, printed: float) -> Claim:
    gain = first - second if first and second else None
    return Claim(
        f"Points that the optimal split gains at {width}",
        "section VI-B, figure 5(a)",
        (
            replace(accuracy("gain", gain, printed), digits=1, unit="points"),
            Comparison("none", 0.0, paper=0.0, unit="points"),
        ),
        pairs=((0, 1),),
    )


FIG5 = Recipe("fig5", cells, show)
