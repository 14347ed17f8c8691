"""Figures of the pages from committed results: speed, leads and the convex problem."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from slimfl.report.figures import colours
from slimfl.report.figures.drawing import canvas, grid
from slimfl.report.figures.drawing import save as save_as_drawn

BLUE, GREY = "#2a6f97", "#9a9a9a"
#: What is drawn in these colours is text, axes or shade; beside them what a dark page needs.
ON_DARK = {
    "#000000": "#e4e4e4",
    "#1d2329": "#e4e4e4",
    "#333333": "#d0d0d0",
    "#5b6670": "#aab4be",
    "#e4e7ea": "#343a40",
    "#cccccc": "#4a4a4a",
}
#: The work of which the README shows the speed: federated averaging, which all of them can do.
COMMON = "fedavg 10 x 500"
OURS = {
    "native": "SlimFL, native engine",
    "slimfl-on-flower": "SlimFL on Flower and Ray",
    "torch": "SlimFL, torch engine",
}
NAMES = OURS | {"fluke": "fluke", "flower": "Flower", "pfl": "pfl-research", "fedjax": "FedJAX"}


def figures(read: Callable[[str], Any]) -> Iterator[tuple[str, Figure]]:
    """Every figure with its name.

    Args:
        read: Gives a committed result by its path below docs/results, without `.json`.
    """
    bench, convex = read("bench"), read("convex")
    yield "speed", speed(bench["rows"][COMMON])
    yield "bench", bars(bench["rows"])
    yield "bench-growth", growth(bench["growth"])
    yield "convex-bounds", bounds(convex)
    yield "convex-sweeps", sweeps(convex)
    questions = read("reproduction/standard/results")["questions"]
    claims = next(each["claims"] for each in questions if each["name"] == "budget")
    several = [c for c in claims if c["name"].startswith("budget ") and c["seeds"] > 1]
    yield (
        "both-widths",
        leads(
            {c["name"].removeprefix("budget "): c for c in several},
            "SlimFL's lead over both Vanilla FL runs, points",
        ),
    )
    rows = [
        row for row in read("plans/superposition")["contrasts"]
        if (row["score"], row["scale"]) == ("late tests", "difference")
    ]  # fmt: skip
    yield (
        "superposition-lead",
        leads(
            {f"{row['contrast']}\n({row['of']} − {row['over']})": row for row in rows},
            "difference in accuracy, points",
        ),
    )


def speed(row: Mapping[str, Any]) -> Figure:
    """Bars for the README, with numbers instead of an axis."""
    rates = {NAMES[n]: row["images_per_s"][n]["median"] for n in NAMES if n in row["images_per_s"]}
    with canvas(7.2, 2.4) as (figure, axes):
        shades = [BLUE if name in OURS.values() else GREY for name in rates]
        drawn = axes.barh(list(rates), list(rates.values()), color=shades)
        axes.bar_label(drawn, [f"{value:,.0f}" for value in rates.values()], padding=4)
        axes.invert_yaxis()
        axes.set_xlim(0, 1.1 * max(rates.values()))
        axes.xaxis.set_visible(False)
        axes.tick_params(left=False)
        axes.grid(False)
        axes.spines[:].set_visible(False)
    return figure


def bars(rows: Mapping[str, Any]) -> Figure:
    """Images per second, one panel per kind of work; whiskers from smallest to largest."""
    with grid(len(rows), 1, 7.2, 1.7 * len(rows)) as (figure, panels):
        for axes, (kind, row) in zip(panels, rows.items(), strict=True):
            for name, rate in row["images_per_s"].items():
                reach = [[rate["median"] - rate["min"]], [rate["max"] - rate["median"]]]
                axes.barh(name, rate["median"], xerr=reach, color=BLUE if name in OURS else GREY,
                          ecolor="#333333", capsize=3)  # fmt: skip
            axes.invert_yaxis()
            axes.grid(axis="y", visible=False)
            axes.set_title(kind)
        panels[-1].set_xlabel("images per second (median, whiskers from smallest to largest)")
    return figure


def growth(axes_of_work: Mapping[str, Any]) -> Figure:
    """How the native engine's speed depends on population, local images and widths."""
    with grid(1, len(axes_of_work), 7.2, 2.6) as (figure, panels):
        for axes, (axis, rows) in zip(panels, axes_of_work.items(), strict=True):
            rates = [row["images_per_s"] for row in rows.values()]
            low, middle, high = ([r[key] for r in rates] for key in ("min", "median", "max"))
            axes.plot(range(len(rows)), middle, "o-", color=BLUE)
            axes.fill_between(range(len(rows)), low, high, color=BLUE, alpha=0.2)
            labels = [n.split()[-1] if "=" in n else f"{int(n.split()[0]):,}" for n in rows]
            axes.set_xticks(range(len(rows)), labels, rotation=30)
            axes.set(title=axis, ylim=(0, None))
        panels[0].set_ylabel("images per second")
    return figure


def leads(rows: Mapping[str, Mapping[str, Any]], label: str) -> Figure:
    """One line per difference with its interval; grey where the interval has no effect in it."""
    with canvas(6.4, 0.55 + 0.42 * len(rows)) as (figure, axes):
        for name, row in rows.items():
            shade = GREY if row["low"] <= 0 <= row["high"] else BLUE
            axes.plot([row["low"], row["high"]], [name, name], color=shade, linewidth=2)
            axes.plot(row["mean"], name, "o", color=shade)
        axes.axvline(0, color="#5b6670", linewidth=0.8)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.set_xlabel(f"{label}; bars: 95% intervals", fontsize=8)
    return figure


def bounds(convex: Mapping[str, Any]) -> Figure:
    """Gap and bounds, a panel for every number of segments and channel."""
    channels = list(convex["noise_dbm"])
    with grid(2, len(channels), 8.4, 4.8) as (figure, panels):
        for row in convex["bounds"]:
            place = (row["segments"] == 4) * len(channels) + channels.index(row["channel"])
            axes, iid = panels[place], row["non_iid"] == 0
            if iid:
                axes.plot(row["round"], row["bound_paper"], color=colours.VERMILLION,
                          label="paper's")  # fmt: skip
                axes.plot(row["round"], row["bound_sharp"], color=colours.BLUE, label="sharper")
                axes.fill_between(row["round"], row["low"], row["high"], color="#cccccc", lw=0)
            label = "measured, IID" if iid else "measured, non-IID"
            axes.plot(row["round"], row["measured"], "-" if iid else "--", color=colours.BLACK,
                      label=label)  # fmt: skip
            axes.set(xscale="log", yscale="log", ylim=(5e-5, 3e3))
            axes.set_title(f"S = {row['segments']}, {row['channel']}")
        panels[0].legend(fontsize=7, loc="lower left")
        figure.supxlabel("round t", fontsize=9)
        figure.supylabel("E[F(θₜ)] − F*", fontsize=9)
    return figure


def sweeps(convex: Mapping[str, Any]) -> Figure:
    """What the split and the weights do, each curve relative to its lowest value."""
    split, weights = convex["split"], convex["weights"]
    with grid(1, 2, 8.4, 4.4) as (figure, (left, right)):
        _sweep(left, split["lambda"], {
            "D = 1/p1 + 1/p2": split["D"],
            "variance, level noise": split["level"]["variance"],
            "gap, level noise": split["level"]["gap_times_round"],
            "variance, isotropic noise": split["isotropic"]["variance"],
            "gap, isotropic noise": split["isotropic"]["gap_times_round"],
        })  # fmt: skip
        left.axvline(split["proposition_1_numeric"], color=colours.GREY, linestyle=":")
        left.set(xlabel="λ, segment 1's share of the power", ylim=(0.98, 1.4))
        _sweep(right, weights["w_1"], {
            "bound": weights["bound"],
            "bound, own constants": weights["bound_own_constants"],
            "variance, shared noise": weights["variance_shared_noise"],
            "variance, independent noise": weights["variance_independent_noise"],
            "gap": weights["gap"],
        })  # fmt: skip
        right.axvline(weights["proposition_2"], color=colours.GREY, linestyle=":")
        right.set(xlabel="w1, weight of the narrow width", ylim=(0.95, 2.5))
        left.set_ylabel("relative to the lowest")
    return figure


def _sweep(axes: Axes, places: Sequence[float], curves: Mapping[str, Sequence[float]]) -> None:
    shades = (colours.VERMILLION, colours.BLUE, colours.SKY, colours.GREEN, colours.ORANGE)
    for (name, values), shade in zip(curves.items(), shades, strict=True):
        axes.plot(places, [v / min(values) for v in values], color=shade, label=name)
    axes.legend(fontsize=7.5, loc="upper left", bbox_to_anchor=(0, -0.15))


def save(figure: Figure, path: Path) -> None:
    """Write an SVG for light and for dark pages.

    Background, text and grey lines follow `prefers-color-scheme`, which a browser answers inside an
    `<img>` too. Colours that carry a meaning stay.
    """
    figure.patch.set_visible(False)
    for ax in figure.axes:
        ax.patch.set_visible(False)
        if legend := ax.get_legend():
            legend.get_frame().set_visible(False)
    save_as_drawn(figure, path)
    path.write_text(follow_mode(path.read_text(encoding="utf-8")), encoding="utf-8")


def follow_mode(svg: str) -> str:
    """The picture with a style for dark pages."""
    rules = [f"svg {{ fill: {ON_DARK['#000000']} }}"]
    rules += [
        f'[style*="{kind}: {light}"] {{ {kind}: {dark} !important }}'
        for light, dark in ON_DARK.items()
        for kind in ("fill", "stroke")
        if f"{kind}: {light}" in svg
    ]
    style = "<style>@media (prefers-color-scheme: dark) {" + " ".join(rules) + "}</style>\n"
    svg = re.sub(r" <metadata>.*?</metadata>\n", "", svg, count=1, flags=re.DOTALL)
    return re.sub(r"(<svg [^>]*>\n)", lambda found: found[1] + style, svg, count=1)
