"""The report's interactive plots as plain data, which the scripts in `charts/` draw.

A description has its `kind` (curves, bars or heat), the `height` in pixels, the `range` of the
values, and the data. Colours come in pairs, for a light and for a dark screen. Text is plain text.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from slimfl.report.figures import colours
from slimfl.results.curves import DEVICES, Arrivals, thin
from slimfl.results.expected import expected_of
from slimfl.results.groups import Group
from slimfl.results.seed_summary import GroupSummary

Plot = dict[str, Any]

#: Dashes of lines, solid for the widest network.
_DASHES = ("", "8 4", "2 3", "8 3 2 3", "14 5", "14 4 2 4")
#: Heights in pixels: a bar with its gap, the name above a method's bars, and the axis.
_BAR, _NAME, _AXIS = 24, 24, 52


@dataclass(frozen=True)
class Line:
    """A curve of one method: the mean over seeds and, with several, their range."""

    name: str
    method: str
    width: str | None
    x: list[list[float]]
    """One list per horizontal axis that the plot offers."""
    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]


@dataclass(frozen=True)
class Axis:
    """One axis: its quantity, and the format of its values."""

    label: str
    unit: str = ""
    whole: bool = False
    """Ticks at whole numbers only."""
    decimals: int | None = None
    """Of a value under the pointer; four significant digits by default."""
    from_zero: bool = False

    def as_json(self) -> dict[str, Any]:
        """The axis as the script needs it."""
        words = {"label": self.label, "unit": self.unit, "whole": self.whole}
        return words if self.decimals is None else {**words, "decimals": self.decimals}


ROUND = Axis("round", whole=True)


def curves(
    lines: Sequence[Line],
    palette: dict[str, str],
    widths: Sequence[str],
    x: Sequence[Axis],
    y: Axis,
    height: int,
) -> Plot:
    """Lines with their bands: colour by method, dash by width."""
    dashes = colours.dashes(widths, _DASHES)
    shared: list[list[float]] = []  # stored once, as methods often have the same rounds
    series = []
    for line in lines:
        places = [[_short(value) for value in values] for values in line.x]
        shared += [values for values in places if values not in shared]
        one = {
            "name": line.name,
            "colour": colours.on_screen(palette[line.method]),
            "dash": dashes[line.width] if line.width else "",
            "x": [shared.index(values) for values in places],
            "y": _all_short(line.mean),
        }
        if line.low != line.high:
            one |= {"low": _all_short(line.low), "high": _all_short(line.high)}
        series.append(one)
    drawn = [v for line in lines for v in (*line.low, *line.high) if v is not None]
    return {
        "kind": "curves",
        "height": height,
        "x": [axis.as_json() for axis in x],
        "y": y.as_json(),
        "range": _around(drawn, y),
        "xs": shared,
        "series": series,
    }


def arrivals(table: Arrivals, segments: int) -> Plot:
    """One cell per device and round: how much of its update was decoded."""
    return {
        "kind": "heat",
        "height": _AXIS + max(90, min(480, 18 * len(table.devices))),
        "x": [ROUND.as_json()],
        "y": {"label": "device"},
        "rounds": table.rounds,
        "devices": table.devices,
        # one character per cell, as there may be hundreds of thousands
        "cells": ["".join(_DIGITS[code] for code in row) for row in table.codes],
        "words": arrival_words(segments),
        "colours": [colours.on_screen(shade) for shade in colours.arrivals(segments)],
    }


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def arrival_words(segments: int) -> list[str]:
    """The meaning of every code of a heat map."""
    some = ["segment 1", *(f"segments 1–{i}" for i in range(2, segments + 1))]
    return ["nothing", *some, "not asked", "no answer", "refused by the server"]


def delivered(rows: Sequence[tuple[Group, GroupSummary]], palette: dict[str, str]) -> Plot:
    """The measured delivered share of every segment, and what equation (5) expects."""
    bars = _Bars()
    values: list[float] = []
    marks: list[float | None] = []
    errors: list[float | None] = []
    for group, row in rows:
        theory = expected_of(group.runs[0].experiment, group.runs[0].provenance)
        for i, spread in enumerate(row.delivered_share):
            if spread is None:
                continue
            bars.add(row.name, i, palette[row.name])
            values.append(_short(100 * spread.mean))
            p = None if theory is None else theory[i]
            marks.append(None if p is None else _short(100 * p))
            error = None if p is None else 200 * sqrt(p * (1 - p) / row.asked[i])
            errors.append(None if error is None else _short(error))
    return bars.plot(
        Axis("share of asked devices, %", "%", decimals=1),
        [{"name": "measured", "values": values, "colours": bars.colours}],
        [0.0, 105.0],
        marks={"name": "expected", "values": marks, "errors": errors},
    )


def bits(rows: Sequence[GroupSummary], palette: dict[str, str]) -> Plot:
    """Decoded and dropped bits per method and segment."""
    bars = _Bars()
    decoded: list[float] = []
    dropped: list[float] = []
    for row in rows:
        for i, sent in enumerate(row.sent_mb):
            if sent.mean:
                bars.add(row.name, i, palette[row.name])
                decoded.append(_short(row.decoded_mb[i].mean))
                dropped.append(_short(row.dropped_mb[i].mean))
    most = max((a + b for a, b in zip(decoded, dropped, strict=True)), default=1.0)
    return bars.plot(
        Axis("MB in the whole run", "MB"),
        [
            {"name": "decoded", "values": decoded, "colours": bars.colours},
            {"name": "dropped", "values": dropped, "colours": bars.colours, "hatched": True},
        ],
        [0.0, 1.03 * most],
    )


def partition(class_counts: list[list[int]]) -> tuple[Plot, bool]:
    """Samples of every class on every device (figure 3); True if devices were left out."""
    devices, fewer = thin(range(len(class_counts)), 2 * DEVICES)
    stacks = [
        {
            "name": f"class {label}",
            "values": [class_counts[device][label] for device in devices],
            "colour": colours.on_screen(colours.CLASSES[label % len(colours.CLASSES)]),
        }
        for label in range(len(class_counts[0]))
    ]
    plot = {
        "kind": "bars",
        "height": _AXIS + max(90, min(480, 26 * len(devices))),
        "x": [Axis("training samples", whole=True).as_json()],
        "y": {"label": "device"},
        "range": [0.0, 1.03 * max(map(sum, class_counts))],
        "rows": [{"label": str(device)} for device in devices],
        "stacks": stacks,
        "legend": True,
    }
    return plot, fewer


def share_axis(plots: Iterable[Plot]) -> None:
    """Give plots of one quantity the same scale, so that settings can be compared."""
    plots = list(plots)
    ranges = [plot["range"] for plot in plots]
    for plot in plots:
        plot["range"] = [min(low for low, _ in ranges), max(high for _, high in ranges)]


class _Bars:
    """Horizontal bars, one per segment, under the name of their method."""

    def __init__(self) -> None:
        self.rows: list[dict[str, str]] = []
        self.colours: list[list[str]] = []

    def add(self, name: str, segment: int, colour: str) -> None:
        self.rows.append({"name": name, "label": f"segment {segment + 1}"})
        self.colours.append(colours.on_screen(colour))

    def plot(self, value: Axis, stacks: list[Plot], scale: list[float], **more: Any) -> Plot:
        names = len({row["name"] for row in self.rows})
        return {
            "kind": "bars",
            "height": _AXIS + _BAR * len(self.rows) + _NAME * names,
            "x": [value.as_json()],
            "y": {"label": ""},
            "range": scale,
            "rows": self.rows,
            "stacks": stacks,
            "legend": False,
            **more,
        }


def _around(values: list[float], axis: Axis) -> list[float]:
    """A range with some space around all values."""
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    low = min(0.0, low) if axis.from_zero else low
    room = 0.04 * (high - low) or 0.05 * abs(high) or 1.0
    return [low if axis.from_zero else low - room, high + room]


def _short(value: float) -> float:
    """Six digits: more than anybody can read from a plot, at less than half the bytes."""
    return value if isinstance(value, int) else float(f"{value:.6g}")


def _all_short(values: Iterable[float | None]) -> list[float | None]:
    return [None if value is None else _short(value) for value in values]
