"""Accuracy curves of several runs in panels, in one style for all figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from slimfl.report.figures.drawing import grid
from slimfl.results import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Line:
    """One width of runs that differ only in the seed."""

    label: str
    records: Sequence[RunRecord]
    width: str
    colour: str
    dash: str = "-"

    def points(self) -> tuple[list[int], np.ndarray]:
        """Rounds, and (mean, lowest, highest) accuracy over the seeds in percent."""
        by_round: dict[int, list[float]] = {}
        for record in self.records:
            for line in record.evaluated:
                by_round.setdefault(line.round, []).append(100 * line.accuracy[self.width])
        # only rounds that all seeds have: otherwise the mean would jump
        whole = {n: v for n, v in by_round.items() if len(v) == len(self.records)}
        values = [(np.mean(v), min(v), max(v)) for v in whole.values()]
        return list(whole), np.array(values).reshape(-1, 3).T


@dataclass(frozen=True)
class Panel:
    """One set of axes."""

    title: str
    lines: Sequence[Line]


def curves_figure(panels: Sequence[Panel], columns: int) -> Figure:
    """Accuracy over rounds; a band runs from the lowest to the highest seed."""
    from matplotlib.ticker import MaxNLocator

    rows = -(-len(panels) // columns)
    with grid(rows, columns, 3.4 * columns, 2.6 * rows + 0.6) as (figure, all_axes):
        handles = {}
        for axes, panel in zip(all_axes, panels, strict=False):
            for line in panel.lines:
                if not line.records:
                    continue
                rounds, (mean, low, high) = line.points()
                (drawn,) = axes.plot(rounds, mean, color=line.colour, linestyle=line.dash)
                axes.fill_between(rounds, low, high, color=line.colour, alpha=0.13, lw=0)
                handles[line.label] = drawn
            axes.set(xlabel="round", ylabel="accuracy, %", title=panel.title)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            if not any(line.records for line in panel.lines):
                axes.text(0.5, 0.5, "not run", transform=axes.transAxes, ha="center")
                axes.set(xticks=[], yticks=[])
        for axes in all_axes[len(panels) :]:
            axes.set_visible(False)
        if handles:
            figure.legend(handles.values(), handles.keys(), loc="outside lower center",
                          ncols=min(4, len(handles)), handlelength=2.8)  # fmt: skip
    return figure
