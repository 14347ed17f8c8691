"""Figures of runs: the partition of the data, and accuracy over rounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from slimfl.errors import RequestError
from slimfl.report.figures import colours
from slimfl.report.figures.drawing import canvas, grid
from slimfl.results.groups import Group, group
from slimfl.results.records import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINES = ("-", "--", ":", "-.")


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

    from slimfl.results.curves import width_curves  # and with it data frames

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
