"""The report's interactive plots as plain data, which `charts.js` draws.

A description has its `kind` (curves, bars or heat), the `height` in pixels, the `range` of the
values, and the data. Colours come in pairs, for a light and for a dark screen. Text is plain text.

A page stays below 1 MB however many runs it shows: the more curves, the fewer points each has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any

import numpy as np
import pandas as pd

from slimfl.report.figures import colours
from slimfl.results.curves import POINTS, battery_charge, thin, width_curves, x_axes
from slimfl.results.devices import delivery
from slimfl.results.groups import Group
from slimfl.results.records import RunRecord
from slimfl.results.rules import expected_of
from slimfl.results.summary import GroupRow

Plot = dict[str, Any]

#: Target numbers of values in all curves of a page, and of cells in all its heat maps.
NUMBERS, CELLS = 36_000, 150_000
#: Maximum number of devices on a map.
MOST_DEVICES = 2_000
#: The largest number of devices that a heat map shows.
DEVICES = 100
#: Minimum number of points per curve.
FEWEST = 40
#: Dashes of lines, solid for the widest network.
_DASHES = ("", "8 4", "2 3", "8 3 2 3", "14 5", "14 4 2 4")
#: Heights in pixels: a bar with its gap, or the name above a method's bars, and the axis.
_BAR, _AXIS = 24, 52
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


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


@dataclass(frozen=True)
class Line:
    """A curve of one method: the mean over seeds and, with several, their range."""

    name: str
    method: str
    width: str | None
    x: list[list[float]]
    """One list per horizontal axis that the plot offers."""
    y: pd.DataFrame
    """Columns mean, low and high."""


ROUND = Axis("round", whole=True)
ACCURACY = Axis("accuracy on the test set, %", "%", decimals=1)
#: What accuracy is drawn against, by the column of `x_axes`.
COSTS = {
    "sending_j": Axis("transmit energy so far, J", "J"),
    "airtime_s": Axis("airtime so far, s", "s"),
    "sent_mb": Axis("data sent so far, MB", "MB"),
    "clock_s": Axis("virtual time so far, s", "s"),
    "energy_j": Axis("energy of computing and sending so far, J", "J"),
}


@dataclass
class Lines:
    """Makes the curves of groups, each with at most `points` rounds."""

    points: int
    cells: int
    thinned: bool = False
    """True if anything has lost rounds or devices so far."""

    @classmethod
    def for_page(cls, groups: Sequence[Group]) -> Lines:
        """With as many points as a page allows for these groups."""
        # accuracy twice, two losses, five costs; with several seeds each curve has a band
        numbers = sum(
            len(group.runs[0].width_names) * (4 * (3 if len(group.runs) > 1 else 1) + len(COSTS))
            for group in groups
        )
        points = max(FEWEST, min(POINTS, NUMBERS // max(1, numbers)))
        return cls(points, CELLS // max(1, len(groups)))

    def of_widths(self, group: Group, what: str, scale: float = 1) -> list[Line]:
        """`accuracy`, `loss` or `training_loss` over rounds, one line per width."""
        return [
            self._line(group, width, scale * table)
            for width, table in width_curves(group, what).items()
        ]

    def against_cost(self, group: Group) -> list[Line]:
        """Accuracy in percent against each of `COSTS`."""
        lines, axes = self.of_widths(group, "accuracy", 100), x_axes(group)
        for line in lines:
            line.x[:] = [axes.loc[line.y.index, name].tolist() for name in COSTS]
        return lines

    def batteries(self, group: Group) -> list[Line]:
        """The total battery charge in percent over rounds and virtual time, of the first seed."""
        found = battery_charge(group.runs[0])
        if found is None:
            return []
        left = 100 * found["left_share"]
        line = self._line(group, None, pd.DataFrame({"mean": left, "low": left, "high": left}))
        line.x.append(found.loc[line.y.index, "clock_s"].tolist())
        return [line]

    def heat(self, run: RunRecord) -> Plot:
        """One cell per device and round: how much of its update was decoded."""
        segments, count = len(run.experiment.model.widths), run.experiment.federation.devices
        devices, fewer_devices = thin(range(count), DEVICES)
        points = min(POINTS, max(FEWEST, self.cells // len(devices)))
        lines, fewer_rounds = thin(run.lines, points)
        self.thinned |= fewer_devices or fewer_rounds
        state, columns = np.empty(count, np.int64), []
        for line in lines:
            # the codes of `arrival_words`
            state.fill(segments + 1)
            state[line.devices] = line.decoded
            state[line.dropped_out] = segments + 2
            state[line.refused] = segments + 3
            columns.append([_DIGITS[code] for code in state[devices].tolist()])
        return {
            "kind": "heat",
            "height": _AXIS + max(90, min(480, 18 * len(devices))),
            "x": [ROUND.as_json()],
            "y": {"label": "device"},
            "rounds": [line.round for line in lines],
            "devices": devices,
            # one character per cell, as there may be hundreds of thousands
            "cells": ["".join(row) for row in zip(*columns, strict=True)] or [""] * len(devices),
            "words": arrival_words(segments),
            "colours": [colours.on_screen(shade) for shade in colours.arrivals(segments)],
        }

    def partition(self, class_counts: list[list[int]]) -> Plot:
        """Samples of every class on every device (figure 3)."""
        devices, fewer = thin(range(len(class_counts)), 2 * DEVICES)
        self.thinned |= fewer
        return {
            "kind": "bars",
            "height": _AXIS + max(90, min(480, 26 * len(devices))),
            "x": [Axis("training samples", whole=True).as_json()],
            "y": {"label": "device"},
            "range": [0.0, 1.03 * max(map(sum, class_counts))],
            "rows": [{"label": str(device)} for device in devices],
            "stacks": [
                {
                    "name": f"class {label}",
                    "values": [class_counts[device][label] for device in devices],
                    "colour": colours.on_screen(colours.CLASSES[label % len(colours.CLASSES)]),
                }
                for label in range(len(class_counts[0]))
            ],
            "legend": True,
        }

    def cell_map(self, run: RunRecord) -> Plot | None:
        """Every device at its place, coloured by how often it was heard; None if all are alike."""
        devices = run.devices
        if devices is None or not run.lines:
            return None
        share = delivery(run.lines, len(devices)).share.to_numpy()
        kept, fewer = thin(range(len(devices)), MOST_DEVICES)
        self.thinned |= fewer
        full = len(run.experiment.model.widths) - 1
        shares = short(100 * share[kept])
        return {
            "kind": "map",
            "height": 360,
            "points": [
                [int(devices.ids[i]), *short([devices.x_m[i], devices.y_m[i]]), heard,
                 bool(devices.max_width[i] == full)]
                for i, heard in zip(kept, shares, strict=True)
            ],
            "colours": [colours.on_screen(colours.delivery(share[i])) for i in kept],
        }  # fmt: skip

    def _line(self, group: Group, width: str | None, table: pd.DataFrame) -> Line:
        kept, fewer = thin(range(len(table)), self.points)
        self.thinned |= fewer
        shown = table.iloc[kept]
        name = f"{group.name}, {width}" if width else group.name
        return Line(name, group.name, width, [shown.index.tolist()], shown)


def curves(
    lines: Sequence[Line],
    palette: dict[str, str],
    widths: Sequence[str],
    x: Sequence[Axis],
    y: Axis,
    height: int,
) -> Plot:
    """Lines with their bands.

    Args:
        lines: What is drawn.
        palette: A colour by the name of a method.
        widths: The names of all widths, narrowest first; each has its dash.
        x: The horizontal axes that the reader can choose from.
        y: The vertical axis.
        height: In pixels.
    """
    dashes = colours.dashes(widths, _DASHES)
    shared: list[list[float]] = []  # stored once, as methods often have the same rounds
    series = []
    for line in lines:
        places = [short(values) for values in line.x]
        shared += [values for values in places if values not in shared]
        one = {
            "name": line.name,
            "colour": colours.on_screen(palette[line.method]),
            "dash": dashes[line.width] if line.width else "",
            "x": [shared.index(values) for values in places],
            "y": short(line.y["mean"]),
        }
        if not line.y["low"].equals(line.y["high"]):
            one |= {"low": short(line.y["low"]), "high": short(line.y["high"])}
        series.append(one)
    ends = [line.y[column] for line in lines for column in ("low", "high") if len(line.y)]
    low, high = (min(map(min, ends)), max(map(max, ends))) if ends else (0.0, 1.0)
    low = min(0.0, low) if y.from_zero else low
    room = 0.04 * (high - low) or 0.05 * abs(high) or 1.0
    return {
        "kind": "curves",
        "height": height,
        "x": [axis.as_json() for axis in x],
        "y": y.as_json(),
        "range": [low if y.from_zero else low - room, high + room],
        "xs": shared,
        "series": series,
    }


def arrival_words(segments: int) -> list[str]:
    """The meaning of every code of a heat map."""
    some = ["segment 1", *(f"segments 1–{i}" for i in range(2, segments + 1))]
    return ["nothing", *some, "not asked", "no answer", "refused by the server"]


def delivered(rows: Sequence[tuple[Group, GroupRow]], palette: dict[str, str]) -> Plot:
    """The measured delivered share of every segment, and what equation (5) expects."""
    measured: list[float] = []
    marks: list[float | None] = []
    errors: list[float | None] = []
    bars = []
    for group, row in rows:
        theory = expected_of(group.runs[0].experiment, group.runs[0].provenance)
        for i in range(row.segments):
            share = row.mean(f"segments.{i + 1}.delivered_share")
            if share is None:
                continue
            bars.append((row.name, i))
            measured.append(100 * share)
            p = None if theory is None else theory[i]
            asked = row.total(f"segments.{i + 1}.asked")
            marks.append(None if p is None else 100 * p)
            errors.append(None if p is None else 200 * sqrt(p * (1 - p) / asked))
    stacks = [{"name": "measured", "values": short(measured)}]
    expected = {"name": "expected", "values": short(marks), "errors": short(errors)}
    axis = Axis("share of asked devices, %", "%", decimals=1)
    return _bars(bars, palette, axis, stacks, 105.0) | {"marks": expected}


def bits(rows: Sequence[GroupRow], palette: dict[str, str]) -> Plot:
    """Decoded and dropped bits per method and segment."""
    bars, values = [], []
    for row in rows:
        for i in range(row.segments):
            sent, decoded, dropped = (
                row.mean(f"segments.{i + 1}.{what}_mb") or 0.0
                for what in ("sent", "decoded", "dropped")
            )
            if sent:
                bars.append((row.name, i))
                values.append((decoded, dropped))
    stacks: list[Plot] = [
        {"name": "decoded", "values": short(one for one, _ in values)},
        {"name": "dropped", "values": short(one for _, one in values), "hatched": True},
    ]
    most = max(map(sum, values), default=1.0)
    return _bars(bars, palette, Axis("MB in the whole run", "MB"), stacks, 1.03 * most)


def share_axis(plots: Iterable[Plot]) -> None:
    """Give plots of one quantity the same scale, so that settings can be compared."""
    plots = list(plots)
    ranges = [plot["range"] for plot in plots]
    for plot in plots:
        plot["range"] = [min(low for low, _ in ranges), max(high for _, high in ranges)]


def _bars(
    bars: Sequence[tuple[str, int]],
    palette: dict[str, str],
    value: Axis,
    stacks: list[Plot],
    most: float,
) -> Plot:
    """Horizontal bars, one per segment, under the name of their method."""
    shades = [colours.on_screen(palette[name]) for name, _ in bars]
    return {
        "kind": "bars",
        "height": _AXIS + _BAR * (len(bars) + len({name for name, _ in bars})),
        "x": [value.as_json()],
        "y": {"label": ""},
        "range": [0.0, most],
        "rows": [{"name": name, "label": f"segment {i + 1}"} for name, i in bars],
        "stacks": [{**stack, "colours": shades} for stack in stacks],
        "legend": False,
    }


def short(values: Iterable[float | None]) -> list[Any]:
    """Six digits: more than anybody can read from a plot, at less than half the bytes."""
    return [
        None
        if value is None or not isfinite(value)
        else value
        if isinstance(value, int)
        else float(f"{value:.6g}")
        for value in values
    ]
