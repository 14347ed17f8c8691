"""The figures of the studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slimfl.report.figures import colours
from slimfl.report.figures.drawing import canvas, grid

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Verdict:
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


def regime_map(verdicts: Sequence[Verdict], panels: Sequence[str]) -> Figure:
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


def _square(axis: Axes, x: int, y: int, colour: str, each: Verdict) -> None:
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
    half_width: float | None


def lead_figure(panels: Mapping[str, Sequence[Lead]], over: str) -> Figure:
    """Paired differences to one method, a panel per measure; filled where the interval omits 0.

    Rows are in the order of the first panel, the largest at the top.
    """
    names = [row.name for row in sorted(next(iter(panels.values())), key=lambda row: row.mean)]
    with grid(1, len(panels), 3.4 * len(panels) + 2.2, 0.34 * len(names) + 1.3) as (figure, axes):
        for axis, (measure, rows) in zip(axes, panels.items(), strict=True):
            axis.axvline(0, color="#5b6670", linewidth=1)
            for row in rows:
                colour = colours.BLUE if row.name.startswith("SlimFL") else colours.GREY
                half = row.half_width or 0.0
                decided = row.half_width is not None and abs(row.mean) > half
                axis.errorbar(row.mean, names.index(row.name), xerr=half or None, color=colour,
                              marker="o", ms=7, mew=1.6, mfc=colour if decided else "white",
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


@dataclass(frozen=True)
class Dots:
    """A method's accuracy for everybody, and on the data of the devices that are far away."""

    name: str
    overall: float
    overall_deviation: float
    far: float
    far_deviation: float


def fairness_figure(rows: Sequence[Dots], title: str) -> Figure:
    """Two dots per method, the best at the top; the line between them is what fairness costs."""
    ordered = sorted(rows, key=lambda row: row.overall)
    with canvas(6.6, 0.36 * len(rows) + 1.5) as (figure, axes):
        for y, row in enumerate(ordered):
            colour = colours.BLUE if row.name.startswith("SlimFL") else colours.GREY
            axes.plot([row.far, row.overall], [y, y], color=colour, alpha=0.35,
                      linewidth=3, zorder=1)  # fmt: skip
            for x, deviation, fill in (
                (row.overall, row.overall_deviation, colour),
                (row.far, row.far_deviation, "white"),
            ):
                axes.errorbar(x, y, xerr=deviation or None, color=colour, marker="o", mfc=fill,
                              ms=7, mew=1.6, capsize=2, elinewidth=1, linestyle="none")  # fmt: skip
        axes.set_yticks(range(len(ordered)), [row.name for row in ordered])
        for label, row in zip(axes.get_yticklabels(), ordered, strict=True):
            label.set_fontweight("bold" if row.name.startswith("SlimFL") else "normal")
        axes.set_ylim(-0.6, len(ordered) - 0.4)
        axes.grid(axis="y", visible=False)
        axes.set(xlabel="accuracy, %", title=title)
        dots = [
            axes.plot([], [], marker="o", ms=7, mew=1.6, linestyle="none", color=colours.BLACK,
                      mfc=fill, label=label)[0]
            for fill, label in ((colours.BLACK, "on all test images"),
                                ("white", "on the data of the farthest quarter of the devices"))
        ]  # fmt: skip
        axes.legend(handles=dots, loc="upper left", bbox_to_anchor=(-0.3, -0.14), ncols=2)
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
