"""Accuracy against energy per image, for every width of a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from slimfl.report.figures import colours
from slimfl.report.figures.drawing import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def energy_figure(
    points: Sequence[tuple[str, float, float]],
    cascade: Sequence[tuple[float, float]],
    preset: str,
) -> Figure:
    """Points: (name, joules per image, accuracy), cascade: (joules per image, accuracy)."""
    with canvas(6.2, 3.6) as (figure, axes):
        if cascade:
            joules, shares = zip(*sorted(cascade), strict=True)
            axes.plot(
                [1e6 * value for value in joules],
                [100 * share for share in shares],
                color=colours.GREY,
                linestyle="--",
                marker=".",
                label="cascade: narrow first, full when unsure",
            )
        for name, value, share in points:
            axes.plot([1e6 * value], [100 * share], "o", color=colours.BLUE)
            axes.annotate(
                name, (1e6 * value, 100 * share), (5, -11), textcoords="offset points", fontsize=8
            )
        axes.set(
            xlabel=f"energy per image, µJ (preset {preset})",
            ylabel="accuracy on the test set, %",
            title="Accuracy against energy",
        )
        axes.margins(x=0.15, y=0.15)
        if cascade:
            axes.legend(loc="lower right")
    return figure
