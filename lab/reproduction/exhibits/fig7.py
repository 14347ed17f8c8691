"""Figure 7: accuracy over rounds under three noise levels and two data distributions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lab.reproduction.cells.cell import Cell, cell
from lab.reproduction.cells.scale import Scale
from lab.reproduction.exhibits import table3_runs as base
from lab.reproduction.exhibits.exhibit import (
    Exhibit,
    Final,
    Recipe,
    Runs,
    Table,
    accuracy,
    final,
    fluctuation,
    same_seeds,
    shown,
)
from lab.reproduction.exhibits.panels import Line, Panel, curves_figure
from lab.reproduction.judging.verdict import Claim, Comparison, Measure, Subject
from slimfl.report.figures import colours
from slimfl.results import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Halfway between the calibrated channels, in decibels.
MIDDLE_DBM = -45.5
NOISES = ("good", "middle", "poor")
ALPHAS = (1.0, 0.1)
COLOURS = {
    "slimfl": colours.BLUE,
    "vanilla-0.5x": colours.ORANGE,
    "vanilla-1.0x": colours.VERMILLION,
}


def setting(scale: Scale, noise: str, alpha: float, method: str) -> list[Cell]:
    """One setting with every seed; good and poor are table III's runs."""
    if noise != "middle":
        return base.setting(scale, noise, alpha, method)
    return [
        cell(scale, method, alpha=alpha, seed=seed, radio__noise_dbm=MIDDLE_DBM)
        for seed in range(scale.seeds_curves)
    ]


def cells(scale: Scale) -> list[Cell]:
    """All runs."""
    return [
        *base.all_cells(scale),
        *(c for alpha in ALPHAS for m in base.METHODS for c in setting(scale, "middle", alpha, m)),
    ]


def show(scale: Scale, runs: Runs) -> Exhibit:
    """Curves, and how much each method loses as the channel gets worse."""
    records = {
        (noise, alpha, method): shown(runs, setting(scale, noise, alpha, method))
        for noise in NOISES
        for alpha in ALPHAS
        for method in base.METHODS
    }
    finals = {
        (noise, alpha, *curve): final(
            runs, setting(scale, noise, alpha, curve[0]), curve[1], scale.last_rounds(alpha)
        )
        for noise in NOISES
        for alpha in ALPHAS
        for curve in base.CURVES
    }
    rows = [
        [
            base.NAMES[curve],
            *(str(finals[n, a, *curve] or "not run") for a in ALPHAS for n in NOISES),
        ]
        for curve in base.CURVES
    ]
    return Exhibit(
        name="fig7",
        title="Figure 7: accuracy over noise and data distribution",
        paper="As the channel gets worse Vanilla FL-1.0x loses accuracy and stability, while "
        "SlimFL keeps both.",
        table=Table(["method", *(f"α = {a:g}, {n}" for a in ALPHAS for n in NOISES)], rows),
        claims=[
            *(_loss(finals, alpha) for alpha in ALPHAS),
            *(_stability(finals, alpha) for alpha in ALPHAS),
        ],
        notes=[
            "The paper's noise levels contradict each other (E6); these are the two calibrated "
            f"channels and {MIDDLE_DBM} dBm half-way between. Bands run from the lowest to the "
            "highest seed.",
            scale.shortened,
        ],
        figure=_figure(records),
    )


def _figure(records: dict[tuple[str, float, str], list[RunRecord]]) -> Figure:
    dashes = {"0.5x": "--", "1.0x": "-"}
    panels = [
        Panel(
            f"{noise} channel, α = {alpha:g}",
            [
                Line(base.NAMES[m, w], records[noise, alpha, m], w, COLOURS[m], dashes[w])
                for m, w in base.CURVES
            ],
        )
        for alpha in ALPHAS
        for noise in NOISES
    ]
    return curves_figure(panels, 3)


Finals = dict[tuple[str, float, str, str], Final | None]


def _loss(finals: Finals, alpha: float) -> Claim:
    """Points lost from the good to the poor channel, at full width."""

    def loss_of(method: str) -> Comparison:
        both = [finals[channel, alpha, method, "1.0x"] for channel in ("good", "poor")]
        good, poor = same_seeds(both)
        name = f"lost by {base.NAMES[method, '1.0x']}"
        lost = accuracy(name, good - poor if good and poor else None)
        return replace(lost, unit="points")

    return Claim(
        f"From the good to the poor channel Vanilla FL-1.0x loses more than SlimFL-1.0x, "
        f"alpha = {alpha:g}",
        "section VI-C, figure 7",
        (loss_of("vanilla-1.0x"), loss_of("slimfl")),
        order=((0, 1),),
    )


def _stability(finals: Finals, alpha: float) -> Claim:
    """Fluctuation from round to round on the poor channel, at full width."""
    curves = (("vanilla-1.0x", "1.0x"), ("slimfl", "1.0x"))
    moves = same_seeds([finals["poor", alpha, *curve] for curve in curves])
    claim = Claim(
        f"On the poor channel Vanilla FL-1.0x fluctuates more than SlimFL-1.0x, alpha = {alpha:g}",
        "section VI-C, figure 7",
        tuple(map(fluctuation, (base.NAMES[c] for c in curves), moves)),
        order=((0, 1),),
        about=Subject(Measure.FLUCTUATION, "poor", alpha),
    )
    if any(each.half_width and each.mean > each.half_width for each in claim.differences):
        return claim
    return replace(claim, doubt="The 95% interval of the difference includes zero.")


FIG7 = Recipe("fig7", cells, show)
