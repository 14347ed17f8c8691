"""Figure 2: SlimTrain, USTrain and SUSTrain."""

from __future__ import annotations

from dataclasses import replace

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
    same_seeds,
    share_seeds,
)
from lab.reproduction.exhibits.panels import Line, Panel, curves_figure
from lab.reproduction.judging.verdict import Claim
from slimfl.report.figures import colours

ALPHAS = (0.1, 1.0)
ALGORITHMS = {"sustrain": "SUSTrain", "ustrain": "USTrain", "slimtrain": "SlimTrain"}
WIDTHS = ("0.5x", "1.0x")
COLOURS = dict(zip(ALGORITHMS, (colours.BLUE, colours.ORANGE, colours.GREEN), strict=True))
#: These take an optimiser step per width: after half the rounds as many as SUSTrain after all.
TWO_STEPS = ("ustrain", "slimtrain")


def setting(scale: Scale, alpha: float, algorithm: str) -> list[Cell]:
    """One algorithm with every seed; SUSTrain is the default, so its runs are table III's."""
    return [
        cell(scale, alpha=alpha, channel="good", seed=seed, training__algorithm=algorithm)
        for seed in range(scale.seeds_curves)
    ]


def cells(scale: Scale) -> list[Cell]:
    """All runs."""
    return [c for a in ALPHAS for name in ALGORITHMS for c in setting(scale, a, name)]


def halfway(scale: Scale, runs: Runs, alpha: float, algorithm: str, width: str) -> Final | None:
    """The accuracy after half of the rounds."""
    cells = setting(scale, alpha, algorithm)
    halves = {}
    for one in cells:
        if one in runs:
            half = one.rounds // 2
            shorter = runs[one].experiment.model_copy(update={"rounds": half})
            halves[one] = replace(runs[one], experiment=shorter, lines=runs[one].lines[:half])
    return final(halves, cells, width, max(1, scale.last_rounds(alpha) // 2))


def after_as_many_steps(sustrain: list[Final | None], others: list[Final | None]) -> str:
    """How SUSTrain compares with another algorithm after half of the other's rounds."""
    known = [each for each in same_seeds([*sustrain, *others]) if each and each.finished]
    if len(known) < 2 * len(WIDTHS):
        return ""
    leads = [f"{(known[k] - known[k + len(WIDTHS)]).mean:+.1f}" for k in range(len(WIDTHS))]
    return (
        "The other algorithm takes two optimiser steps per batch, so it has taken as many as "
        "SUSTrain after half the rounds. Compared there, SUSTrain's lead is "
        f"{' and '.join(leads)} points ({' and '.join(WIDTHS)})."
    )


def show(scale: Scale, runs: Runs) -> Exhibit:
    """Final accuracies, and the order that the paper sees in the curves."""
    finals = {
        (alpha, name, width): final(
            runs, setting(scale, alpha, name), width, scale.last_rounds(alpha)
        )
        for alpha in ALPHAS
        for name in ALGORITHMS
        for width in WIDTHS
    }
    shown = dict(finals)
    for alpha in ALPHAS:
        for width in WIDTHS:
            share_seeds(shown, [(alpha, name, width) for name in ALGORITHMS])
    panels = [
        Panel(
            f"α = {alpha:g}",
            [
                Line(
                    f"{title}, {width}",
                    curves(runs, setting(scale, alpha, name), shown[alpha, name, width]),
                    width,
                    COLOURS[name],
                    dash,
                )
                for name, title in ALGORITHMS.items()
                for width, dash in zip(WIDTHS, ("--", "-"), strict=True)
            ],
        )
        for alpha in ALPHAS
    ]
    halves = {
        (alpha, name, width): halfway(scale, runs, alpha, name, width)
        for alpha in ALPHAS
        for name in TWO_STEPS
        for width in WIDTHS
    }

    def order(alpha: float, first: str, second: str) -> Claim:
        both = same_seeds(
            [finals[alpha, name, width] for width in WIDTHS for name in (first, second)]
        )
        names = [f"{ALGORITHMS[n]}, {w}" for w in WIDTHS for n in (first, second)]
        explanation = ""
        if first not in TWO_STEPS:
            explanation = after_as_many_steps(
                [finals[alpha, first, w] for w in WIDTHS],
                [halves[alpha, second, w] for w in WIDTHS],
            )
        return Claim(
            f"{ALGORITHMS[first]} is ahead of {ALGORITHMS[second]} at alpha = {alpha:g}, at both "
            "widths",
            "figure 2, section III-B",
            tuple(map(accuracy, names, both)),
            order=((0, 1), (2, 3)),
            explanation=explanation,
        )

    return Exhibit(
        name="fig2",
        title="Figure 2: algorithms of local training",
        paper="SUSTrain is ahead of SlimTrain and of USTrain whatever the data; with uneven data "
        "(α = 0.1) USTrain falls behind SlimTrain.",
        table=Table(
            ["algorithm", *(f"α = {a:g}, {w}" for a in ALPHAS for w in WIDTHS)],
            [
                *(
                    [title, *(str(shown[a, name, w] or "not run") for a in ALPHAS for w in WIDTHS)]
                    for name, title in ALGORITHMS.items()
                ),
                *(
                    [
                        f"{ALGORITHMS[name]}, half the rounds",
                        *(str(halves[a, name, w] or "not run") for a in ALPHAS for w in WIDTHS),
                    ]
                    for name in TWO_STEPS
                ),
            ],
        ),
        claims=[
            *(order(a, "sustrain", other) for a in ALPHAS for other in ("slimtrain", "ustrain")),
            order(0.1, "slimtrain", "ustrain"),
        ],
        notes=[
            "Good channel, 10 devices. USTrain and SlimTrain step once per width, as the text "
            "says; read as in the appendix, USTrain under Adam is SUSTrain with equal weights "
            "(E13). They take two optimiser steps per batch where SUSTrain takes one; after half "
            "the rounds they have taken as many as SUSTrain after all.",
            scale.shortened,
        ],
        figure=curves_figure(panels, 2),
    )


FIG2 = Recipe("fig2", cells, show)
