"""The report's interactive plots as plain Plotly descriptions: data and layout, no drawing.

They are dictionaries, not `plotly.graph_objects`, because the page's script draws them; it also
adds what depends on the reader's light or dark screen.
"""

from collections.abc import Sequence
from html import escape
from math import sqrt
from typing import Any

from slimfl.report.figures import colours
from slimfl.results.curves import DEVICES, Arrivals, Curve, thin
from slimfl.results.expected import expected_of
from slimfl.results.groups import Group
from slimfl.results.seed_summary import GroupSummary

Plot = dict[str, Any]
"""`data`, `layout`, `height`, and `words` for the codes of a heat map. Text is escaped, for Plotly
reads it as HTML; the colour `INK` stands for that of the page's text."""

_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def accuracy(
    curves: Sequence[tuple[str, dict[str, Curve]]], palette: dict[str, str], widths: list[str]
) -> Plot:
    """Accuracy over rounds: colour by name, dash by width, band from lowest to highest seed."""
    dashes = colours.dashes(widths, _DASHES)
    data = [
        _band(curve, f"{name}, {width}", palette[name], dashes[width], 100, "%{y:.1f} %")
        for name, by_width in curves
        for width, curve in by_width.items()
    ]
    return _plot(
        _bands_first(data), "round", "accuracy on the test set, %", 440, hovermode="x unified"
    )


def energy(curves: Sequence[tuple[str, Curve]], palette: dict[str, str]) -> Plot:
    """Transmit energy of all devices, added up over the rounds."""
    data = [_band(curve, name, palette[name], "solid", 1, "%{y:.4g} J") for name, curve in curves]
    plot = _plot(
        _bands_first(data), "round", "transmit energy so far, J", 340, hovermode="x unified"
    )
    plot["layout"]["yaxis"] |= {"rangemode": "tozero"}
    return plot


def arrivals(table: Arrivals, segments: int) -> Plot:
    """A cell for every device and round: how much of its update was decoded."""
    shades = colours.arrivals(segments)
    steps = [
        [edge, shade]
        for code, shade in enumerate(shades)
        for edge in (code / len(shades), (code + 1) / len(shades))
    ]
    few = len(table.rounds) <= 60
    heat = {
        "type": "heatmap",
        "x": table.rounds,
        "y": [str(device) for device in table.devices],
        "z": table.codes,
        "zmin": -0.5,
        "zmax": len(shades) - 0.5,
        "colorscale": steps,
        "showscale": False,
        "xgap": 1 if few else 0,
        "ygap": 1 if len(table.devices) <= 40 else 0,
        "hovertemplate": "round %{x}, device %{y}<br>%{text}<extra></extra>",
    }
    height = 90 + max(90, min(480, 18 * len(table.devices)))
    plot = _plot([heat], "round", "device", height)
    plot["layout"]["yaxis"] |= {"type": "category", "autorange": "reversed", "showgrid": False}
    plot["layout"]["xaxis"] |= {"showgrid": False, "tickformat": "d"}
    # the page's script spells out every cell; written here, the words would be most of the page
    return plot | {"words": arrival_words(segments)}


def arrival_words(segments: int) -> list[str]:
    """What every code of a heat map means."""
    some = ["segment 1", *(f"segments 1–{i}" for i in range(2, segments + 1))]
    return ["nothing", *some, "not asked", "no answer", "refused by the server"]


def delivered(rows: Sequence[tuple[Group, GroupSummary]], palette: dict[str, str]) -> Plot:
    """The measured share of every segment that was delivered, and what equation (5) expects."""
    measured, expected = _Bars(), _Bars()
    for group, row in rows:
        theory = expected_of(group.runs[0].experiment, group.runs[0].provenance)
        for i, spread in enumerate(row.delivered_share):
            if spread is None:
                continue
            measured.add(row.name, i, 100 * spread.mean, palette[row.name])
            if theory is not None:
                p = theory[i]
                expected.add(row.name, i, 100 * p, "", 200 * sqrt(p * (1 - p) / row.asked[i]))
    data = [
        {
            "type": "bar",
            "name": "measured",
            **measured.columns(),
            "marker": {"color": measured.colours, "opacity": 0.75},
            "hovertemplate": "%{y:.1f} % measured<extra></extra>",
            "showlegend": False,
        },
        {
            "type": "scatter",
            "mode": "markers",
            "name": "expected",
            **expected.columns(),
            "error_y": {"array": expected.errors, "thickness": 1.5, "width": 6, "color": "INK"},
            "marker": {"symbol": "diamond", "size": 9, "color": "INK"},
            "hovertemplate": "%{y:.1f} % expected<extra></extra>",
            "showlegend": False,
        },
    ]
    plot = _plot(data, "", "share of asked devices, %", 360)
    plot["layout"]["yaxis"] |= {"range": [0, 105]}
    return plot


def bits(rows: Sequence[GroupSummary], palette: dict[str, str]) -> Plot:
    """What was decoded and what was dropped, per method and segment."""
    decoded, dropped = _Bars(), _Bars()
    for row in rows:
        for i, sent in enumerate(row.sent_mb):
            if sent.mean:
                decoded.add(row.name, i, row.decoded_mb[i].mean, palette[row.name])
                dropped.add(row.name, i, row.dropped_mb[i].mean, palette[row.name])
    common = {"type": "bar", "showlegend": False}
    data = [
        common
        | decoded.columns()
        | {
            "name": "decoded",
            "marker": {"color": decoded.colours, "opacity": 0.85},
            "hovertemplate": "%{y:.4g} MB decoded<extra></extra>",
        },
        common
        | dropped.columns()
        | {
            "name": "dropped",
            "marker": {
                "color": [colours.faint(c, 0.12) for c in dropped.colours],
                "line": {"color": dropped.colours, "width": 1},
                "pattern": {"shape": "/", "fgcolor": dropped.colours, "size": 6, "solidity": 0.3},
            },
            "hovertemplate": "%{y:.4g} MB dropped<extra></extra>",
        },
    ]
    plot = _plot(data, "", "MB in the whole run", 330)
    plot["layout"]["barmode"] = "stack"
    return plot


def partition(class_counts: list[list[int]]) -> tuple[Plot, bool]:
    """Samples of every class on every device (figure 3), and whether devices were left out."""
    devices, fewer = thin(range(len(class_counts)), 2 * DEVICES)
    data = [
        {
            "type": "bar",
            "name": f"class {label}",
            "x": [str(device) for device in devices],
            "y": [class_counts[device][label] for device in devices],
            "marker": {"color": colours.CLASSES[label % len(colours.CLASSES)]},
            "hovertemplate": f"device %{{x}}: %{{y:,}} of class {label}<extra></extra>",
            "showlegend": True,
        }
        for label in range(len(class_counts[0]))
    ]
    plot = _plot(data, "device", "training samples", 380)
    plot["layout"] |= {"barmode": "stack"}
    plot["layout"]["xaxis"] |= {"type": "category"}
    return plot, fewer


class _Bars:
    """Columns of a bar chart whose axis has two levels: name, then segment."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.segments: list[str] = []
        self.values: list[float] = []
        self.colours: list[str] = []
        self.errors: list[float] = []

    def add(self, name: str, segment: int, value: float, colour: str, error: float = 0.0) -> None:
        self.names.append(escape(name))
        self.segments.append(f"segment {segment + 1}")
        self.values.append(value)
        self.colours.append(colour)
        self.errors.append(error)

    def columns(self) -> dict[str, Any]:
        return {"x": [self.names, self.segments], "y": self.values}


def _band(
    curve: Curve, name: str, colour: str, dash: str, scale: float, hover: str
) -> list[dict[str, Any]]:
    """The mean line; below it, with several seeds, the band."""

    def scaled(values: list[float]) -> list[float]:
        return [round(scale * value, 6) for value in values]

    name = escape(name)
    line = {
        "type": "scatter",
        "mode": "lines+markers" if len(curve.rounds) <= 40 else "lines",
        "name": name,
        "legendgroup": name,
        "x": curve.rounds,
        "y": scaled(curve.mean),
        "line": {"color": colour, "dash": dash, "width": 2.2 if len(curve.rounds) <= 200 else 1.5},
        "marker": {"size": 5},
        "hovertemplate": hover,
        "showlegend": True,
    }
    if curve.low == curve.high:
        return [line]
    edge = {
        "type": "scatter",
        "mode": "lines",
        "name": f"{name} band",
        "legendgroup": name,
        "x": curve.rounds,
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    fill = {"fill": "tonexty", "fillcolor": colours.faint(colour, 0.15)}
    return [edge | {"y": scaled(curve.low)}, edge | fill | {"y": scaled(curve.high)}, line]


def _bands_first(curves: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Lines are drawn last, so that no band veils another curve's line."""
    bands = [trace for curve in curves for trace in curve[:-1]]
    return bands + [curve[-1] for curve in curves]


def _plot(data: list[dict[str, Any]], x: str, y: str, height: int, **layout: Any) -> Plot:
    return {
        "data": data,
        "height": height,
        "layout": {
            "xaxis": {"title": {"text": x}, "automargin": True},
            "yaxis": {"title": {"text": y}, "automargin": True},
            **layout,
        },
    }
