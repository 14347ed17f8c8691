"""All figures of the questions: accuracy over rounds or cost, maps, leads, fronts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from slimfl.report.figures import colours
from slimfl.report.figures.drawing import canvas, grid
from slimfl.results.records import RunRecord

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Curve:
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
    curves: Sequence[Curve]


def curves_figure(panels: Sequence[Panel], columns: int) -> Figure:
    """Accuracy over rounds; a band runs from the lowest to the highest seed."""
    from matplotlib.ticker import MaxNLocator

    rows = -(-len(panels) // columns)
    with grid(rows, columns, 3.4 * columns, 2.6 * rows + 0.6) as (figure, all_axes):
        handles = {}
        for axes, panel in zip(all_axes, panels, strict=False):
            for curve in (one for one in panel.curves if one.records):
                rounds, (mean, low, high) = curve.points()
                (drawn,) = axes.plot(rounds, mean, color=curve.colour, linestyle=curve.dash)
                axes.fill_between(rounds, low, high, color=curve.colour, alpha=0.13, lw=0)
                handles[curve.label + f", {curve.width}" * (curve.width not in curve.label)] = drawn
            axes.set(xlabel="round", ylabel="accuracy, %", title=panel.title)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            if not any(curve.records for curve in panel.curves):
                axes.text(0.5, 0.5, "not run", transform=axes.transAxes, ha="center")
                axes.set(xticks=[], yticks=[])
        for axes in all_axes[len(panels) :]:
            axes.set_visible(False)
        if handles:
            figure.legend(handles.values(), handles.keys(), loc="outside lower center",
                          ncols=min(4, len(handles)), handlelength=2.8)  # fmt: skip
    return figure


@dataclass(frozen=True)
class Costed:
    """A method's tests as (cost, accuracy in percent), a list per seed."""

    label: str
    width: str
    seeds: Sequence[Sequence[tuple[float, float]]]


def cost_figure(panels: Mapping[str, Sequence[Costed]], smooth: int = 5) -> Figure:
    """Accuracy over several costs; bands run from the lowest to the highest seed."""
    with grid(1, len(panels), 3.3 * len(panels), 3.4) as (figure, axes):
        for axis, (cost, curves) in zip(axes, panels.items(), strict=True):
            for curve in (one for one in curves if one.seeds):
                count = min(map(len, curve.seeds))
                x = np.mean([[c for c, _ in seed[:count]] for seed in curve.seeds], axis=0)
                y = np.array([[a for _, a in seed[:count]] for seed in curve.seeds])
                window = min(smooth, count)
                mean = np.array(
                    [np.convolve(each, np.ones(window) / window, "valid") for each in y]
                )
                colour = colours.BLUE if curve.label.startswith("SlimFL") else colours.VERMILLION
                shown = x[window - 1 :]
                axis.plot(shown, mean.mean(0), "--" if curve.width == "0.5x" else "-",
                          color=colour, label=curve.label)  # fmt: skip
                axis.fill_between(shown, mean.min(0), mean.max(0), color=colour, alpha=0.13, lw=0)
            axis.set(xlabel=cost, xlim=(0, None), ylim=(50, None))
        axes[0].set_ylabel("accuracy, %")
        handles, labels = axes[0].get_legend_handles_labels()
        if handles:
            figure.legend(handles, labels, loc="outside lower center", ncols=4, handlelength=2.8)
    return figure


def devices_figure(panels: Mapping[str, Sequence[tuple[str, int, Any]]]) -> Figure:
    """Accuracy over the number of devices, with whiskers of one deviation."""
    with grid(1, max(1, len(panels)), 6.8, 3.0) as (figure, all_axes):
        for axes, (title, points) in zip(all_axes, panels.items(), strict=False):
            for width, dash in (("0.5x", "--"), ("1.0x", "-")):
                known = [(count, one) for w, count, one in points if w == width]
                whiskers = [one.deviation or one.over_rounds for _, one in known]
                axes.errorbar([count for count, _ in known], [one.mean for _, one in known],
                              whiskers, color=colours.BLUE, linestyle=dash, marker="o", ms=4,
                              capsize=3, label=f"SlimFL-{width}")  # fmt: skip
            axes.set(xlabel="devices", ylabel="accuracy, %", title=title)
            axes.legend(loc="best", handlelength=3)  # long enough to distinguish dashes
    return figure


@dataclass(frozen=True)
class Square:
    """One square of the map: who is best in a setting, and by how much."""

    row: str
    column: str
    panel: str
    winner: str
    lead: float
    told_apart: bool
    note: str = ""
    """A sign behind the number."""


@dataclass(frozen=True)
class Point:
    """A method's place between a cost and an accuracy."""

    name: str
    cost: float
    accuracy: float
    deviation: float


@dataclass(frozen=True)
class Line:
    """Means over seeds along some axis."""

    name: str
    x: Sequence[float]
    mean: Sequence[float]
    deviation: Sequence[float]
    dashed: bool = False


def regime_map(verdicts: Sequence[Square], panels: Sequence[str]) -> Figure:
    """Who has the higher mean where, and by how much; hatched if that is not told apart."""
    rows = list(dict.fromkeys(each.row for each in verdicts))
    columns = list(dict.fromkeys(each.column for each in verdicts))
    palette = colours.by_name(["SlimFL", *sorted({each.winner for each in verdicts})])
    with grid(1, len(panels), 4.4 * len(panels) + 1.2, 0.42 * len(rows) + 1.5) as (figure, axes):
        for axis, panel in zip(axes, panels, strict=True):
            axis.grid(False)
            for each in (one for one in verdicts if one.panel == panel):
                x, y = columns.index(each.column), rows.index(each.row)
                _square(axis, x, y, palette[each.winner], each)
            axis.set_xlim(-0.5, len(columns) - 0.5)
            axis.set_ylim(len(rows) - 0.5, -0.5)
            axis.set_xticks(range(len(columns)), [c.replace(" (", "\n(") for c in columns])
            axis.set_yticks(range(len(rows)), rows if axis is axes[0] else [""] * len(rows))
            axis.tick_params(length=0)
            axis.set_title(f"at {panel}")
            axis.set_xlabel("channel (noise)")
        _legend(figure, palette, not all(each.told_apart for each in verdicts))
    return figure


def _square(axis: Axes, x: int, y: int, colour: str, each: Square) -> None:
    from matplotlib.patches import Rectangle

    axis.add_patch(
        Rectangle(
            (x - 0.48, y - 0.46),
            0.96,
            0.92,
            facecolor=colour,
            alpha=0.85 if each.told_apart else 0.28,
            hatch=None if each.told_apart else "////",
            edgecolor="#8b959e",
            linewidth=0,
        )
    )
    number = f"+{each.lead:.1f}{each.note}"
    axis.text(x, y, number, ha="center", va="center", fontsize=8, color="#1d2329",
              weight="bold" if each.told_apart else "normal",
              bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.85}
              )  # fmt: skip


def _legend(figure: Figure, palette: dict[str, str], hatched: bool) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(facecolor=colour, label=name) for name, colour in palette.items()]
    if hatched:
        handles.append(
            Patch(facecolor="#e4e7ea", edgecolor="#8b959e", hatch="////", label="not told apart")
        )
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def pareto_figure(panels: dict[str, Sequence[Point]], cost: str, title: str) -> Figure:
    """Accuracy against a cost, a panel per width; those that nobody beats in both are joined."""
    names = dict.fromkeys(point.name for points in panels.values() for point in points)
    styles = _markers(list(names))
    with grid(1, len(panels), 4.1 * len(panels) + 0.4, 4.6) as (figure, axes):
        for axis, (panel, points) in zip(axes, panels.items(), strict=True):
            front = pareto_front(points)
            axis.plot([p.cost for p in front], [p.accuracy for p in front], color="#b4bcc4",
                      linewidth=1.2, zorder=1)  # fmt: skip
            for point in points:
                colour, marker = styles[point.name]
                axis.errorbar(point.cost, point.accuracy, yerr=point.deviation or None,
                              color=colour, marker=marker, ms=7, mew=1.5, capsize=2,
                              mfc=colour if point in front else "white", linestyle="none",
                              label=point.name)  # fmt: skip
            axis.set_xlabel(cost)
            axis.set_title(f"{title}, at {panel}" if panel == next(iter(panels)) else f"at {panel}")
        axes[0].set_ylabel("accuracy, %")
        handles: dict[str, Artist] = {}
        for axis in axes:
            for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=3)
    return figure


def pareto_front(points: Sequence[Point]) -> list[Point]:
    """The points that no other beats in both, the cheapest first.

    >>> some = [Point("a", 1, 70, 0), Point("b", 2, 60, 0), Point("c", 3, 80, 0)]
    >>> [point.name for point in pareto_front(some)]
    ['a', 'c']
    """
    front: list[Point] = []
    for point in sorted(points, key=lambda p: (p.cost, -p.accuracy)):
        if not front or point.accuracy > front[-1].accuracy:
            front.append(point)
    return front


def _markers(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """A colour and a shape for every name; variants of SlimFL are blue."""
    shapes = "osD^vP*Xhp<>"
    slim = [name for name in names if name.startswith("SlimFL")]
    rest = [name for name in names if name not in slim]
    made = {name: (colours.BLUE, shapes[i % len(shapes)]) for i, name in enumerate(slim)}
    for i, name in enumerate(rest):
        made[name] = (colours.METHODS[i % len(colours.METHODS)], shapes[i % len(shapes)])
    return made


@dataclass(frozen=True)
class Lead:
    """How far a method is ahead of another, with its interval."""

    name: str
    mean: float
    interval: tuple[float, float] | None
    apart: bool


def lead_figure(panels: Mapping[str, Sequence[Lead]], over: str) -> Figure:
    """Paired differences to one method, a panel per measure; filled where told apart.

    Rows are in the order of the first panel, the largest at the top.
    """
    names = [row.name for row in sorted(next(iter(panels.values())), key=lambda row: row.mean)]
    with grid(1, len(panels), 3.4 * len(panels) + 2.2, 0.34 * len(names) + 1.3) as (figure, axes):
        for axis, (measure, rows) in zip(axes, panels.items(), strict=True):
            axis.axvline(0, color="#5b6670", linewidth=1)
            for row in rows:
                colour = colours.BLUE if row.name.startswith("SlimFL") else colours.GREY
                half = (row.interval[1] - row.interval[0]) / 2 if row.interval else None
                axis.errorbar(row.mean, names.index(row.name), xerr=half, color=colour,
                              marker="o", ms=7, mew=1.6, mfc=colour if row.apart else "white",
                              capsize=3, linestyle="none")  # fmt: skip
            axis.set_yticks(range(len(names)), names if axis is axes[0] else [""] * len(names))
            axis.set_ylim(-0.6, len(names) - 0.4)
            axis.grid(axis="y", visible=False)
            axis.set_title(measure)
        for label, name in zip(axes[0].get_yticklabels(), names, strict=True):
            label.set_fontweight("bold" if name.startswith("SlimFL") else "normal")
        figure.supxlabel(
            f"points of full-width accuracy over {over}, with 95% interval; open: not told apart",
            fontsize="small",
        )
    return figure


def line_figure(lines: Sequence[Line], x: str, y: str, title: str, *, log: bool = False) -> Figure:
    """Some quantities over an axis, with bars of one deviation over seeds."""
    names = list(dict.fromkeys(line.name for line in lines))
    palette = colours.by_name(names)
    with canvas(6.2, 3.9) as (figure, axes):
        for line in lines:
            axes.errorbar(line.x, line.mean, yerr=line.deviation, color=palette[line.name],
                          linestyle="--" if line.dashed else "-", marker="o", ms=4, capsize=2,
                          label=line.name)  # fmt: skip
        if log:
            axes.set_xscale("log")
            points = sorted({value for line in lines for value in line.x})
            axes.set_xticks(points, [f"{value:g}" for value in points])
            axes.minorticks_off()
        axes.set(xlabel=x, ylabel=y, title=title)
        axes.legend(loc="upper left", bbox_to_anchor=(0, -0.18), ncols=2)
    return figure
