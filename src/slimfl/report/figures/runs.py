"""Figures of runs, devices and trained models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from slimfl.devices import Population
from slimfl.errors import RequestError
from slimfl.report.figures import colours
from slimfl.report.figures.drawing import canvas, grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from slimfl.results.groups import Group
    from slimfl.results.records import RunRecord

_LINES = ("-", "--", ":", "-.")
_MARKERS = ("v", "s", "D", "^", "P")
#: More devices than this are thinned evenly.
MOST_POINTS = 5_000


def partition_figure(class_counts: Sequence[Sequence[int]], title: str = "") -> Figure:
    """Samples of every class on every device: the paper's figure 3 as stacked bars."""
    counts = np.asarray(class_counts)
    if counts.ndim != 2 or not counts.size:
        raise RequestError("this run has not distributed its data yet; give a run that has started")
    devices, classes = counts.shape
    with canvas(6.2, max(2.4, min(8.0, 0.9 + 0.24 * devices))) as (figure, axes):
        left = np.zeros(devices)
        for label in range(classes):
            colour = colours.CLASSES[label % len(colours.CLASSES)]
            # hatching distinguishes repeated colours
            hatch = "///" if label >= len(colours.CLASSES) else None
            axes.barh(np.arange(devices), counts[:, label], left=left, height=0.8, color=colour,
                      edgecolor="white", linewidth=0.4, hatch=hatch, label=str(label))  # fmt: skip
            left += counts[:, label]
        axes.set(xlabel="training samples", ylabel="device", title=title)
        axes.set_ylim(devices - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        if devices <= 30:
            axes.set_yticks(range(devices))
        axes.legend(title="class", loc="center left", bbox_to_anchor=(1.0, 0.5),
                    ncols=1 + (classes - 1) // 20, handlelength=1.2)  # fmt: skip
    return figure


def accuracy_figure(records: Iterable[RunRecord]) -> Figure:
    """Accuracy over rounds: colour by method, dash by width, band from lowest to highest seed."""
    from matplotlib.ticker import MaxNLocator

    # data frames, which take a second to import and no other figure needs
    from slimfl.results.curves import width_curves
    from slimfl.results.groups import group

    groups = group(records)
    scenes: dict[str, list[Group]] = {}
    for each in groups:
        scenes.setdefault(each.scene, []).append(each)
    palette = colours.by_name(each.name for each in groups)
    columns = min(2, len(scenes))
    rows = -(-len(scenes) // columns)
    with grid(rows, columns, 6.2 if columns == 1 else 9.0, 3.4 * rows) as (figure, all_axes):
        for axes, (scene, members) in zip(all_axes, scenes.items(), strict=False):
            widths = members[0].runs[0].width_names
            dashes = colours.dashes(widths, _LINES)
            for each in members:
                for width, curve in width_curves(each, "accuracy").items():
                    colour, line = palette[each.name], dashes[width]
                    label = f"{each.name}, {width}"
                    shown = 100 * curve
                    axes.plot(shown.index, shown["mean"], color=colour, linestyle=line, label=label)
                    band = (shown["low"], shown["high"])
                    axes.fill_between(shown.index, *band, color=colour, alpha=0.13, lw=0)
            title = scene[:1].upper() + scene[1:]
            axes.set(xlabel="round", ylabel="accuracy on the test set, %", title=title)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.legend(loc="best", handlelength=2.8)
        for axes in all_axes[len(scenes) :]:
            axes.set_visible(False)
    return figure


def cell_figure(
    population: Population, delivered: NDArray[np.float64], widths: tuple[float, ...]
) -> Figure:
    """One map per segment; the shape of a point is the widest width of its device.

    `delivered` [device, segment] is how often each arrives.
    """
    rows = np.linspace(0, len(population) - 1, min(len(population), MOST_POINTS)).astype(np.int64)
    shown, values = population.take(rows), delivered[rows]
    count = values.shape[1]
    with grid(1, count, 3.6 * count + 0.8, 3.9) as (figure, all_axes):
        for segment, axes in enumerate(all_axes):
            for index, width in enumerate(widths):
                some = shown.max_width == index
                if some.any():
                    full = index == len(widths) - 1
                    axes.scatter(
                        shown.x_m[some], shown.y_m[some], s=26, edgecolor="#5b6670", linewidth=0.4,
                        c=[colours.delivery(share) for share in values[some, segment].tolist()],
                        marker="o" if full else _MARKERS[index % len(_MARKERS)],
                    )  # fmt: skip
                    # the shape is the width, whatever its colour
                    axes.plot([], [], _MARKERS[index % len(_MARKERS)] if not full else "o",
                              color=colours.GREY, label=f"trains up to {width}x")  # fmt: skip
            axes.plot(0, 0, marker="+", color="black", markersize=10)
            axes.set(xlabel="m", title=f"segment {segment + 1}: heard in % of rounds")
            axes.set_aspect("equal", adjustable="datalim")
        _scale(figure, all_axes)
        all_axes[0].set_ylabel("m")
        if len(np.unique(shown.max_width)) > 1:
            all_axes[0].legend(loc="upper left", handletextpad=0.3)
    return figure


def _scale(figure: Figure, all_axes: list) -> None:  # type: ignore[type-arg]
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    steps = [colours.delivery(share) for share in np.linspace(0, 1, 51).tolist()]
    colour_map = LinearSegmentedColormap.from_list("delivery", steps)
    mappable = ScalarMappable(Normalize(0, 100), colour_map)
    figure.colorbar(mappable, ax=all_axes, shrink=0.8, label="%")


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
