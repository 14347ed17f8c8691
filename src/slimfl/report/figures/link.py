"""Figures that need no run: power split (figure 4), decoding probabilities, the preferable method,
theorem 1's bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from slimfl.errors import RequestError
from slimfl.experiment import CHANNELS, RadioSection
from slimfl.methods.names import title
from slimfl.radio import (
    Messages,
    build_coding,
    optimal_split,
    possible_links,
    power_split,
    probabilities_over_noise,
    section_probabilities,
    signal,
    sinr_target,
    to_db,
)
from slimfl.radio.bound import TIE
from slimfl.radio.preference import NO_METHOD, preference_map, splits_along
from slimfl.report.figures import colours
from slimfl.report.figures.drawing import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Larger values overflow when the figure is drawn.
DRAWABLE = 1e100
#: The noise powers that figures show: this far below and above the one at which a mean gain just
#: carries everything in one message.
BELOW_DB, ABOVE_DB = 35.0, 15.0
#: Points of a curve; fewer where each is an integral.
POINTS, FEW_POINTS = 801, 51
#: The rates of one segment that `preference_figure` shows, in bit/s/Hz.
MAP_RATES = (0.25, 4.0)


def split_figure(section: RadioSection, rates: Sequence[float]) -> Figure:
    """D = sum 1/p_i against the first segment's share of the power: figure 4, for any S.

    `rates` has the spectral efficiency of every segment in bit/s/Hz. With more than two segments,
    the others share the rest in the ratio of the closed-form optimum.
    """
    rates = tuple(rates)
    if len(rates) < 2:
        raise RequestError("one segment has all the power; give at least two rates")
    superposed = section.multiplexing == "superposition"
    numeric = power_split(section.model_copy(update={"split": "optimal-numeric"}), rates)
    # Segment 1 bears the interference of the others up to here; beyond, their own ratio suffices.
    target = float(sinr_target(rates[0]))
    edge = target / (1 + target) if superposed else 0.0
    quick = section.decoder == "outage" and not section.shadowing_db
    points = POINTS if quick and section.path_loss not in ("umi", "uma") else FEW_POINTS
    shares = edge + (1 - edge) * np.linspace(0, 1, points)[1:-1]
    values = np.array([_inverse_sum(section, rates, one) for one in splits_along(rates, shares)])
    values[~(values <= DRAWABLE)] = np.nan
    marks = [
        ("numeric optimum", numeric, "D", colours.GREEN),
        ("configured", _configured(section, rates), "s", colours.VERMILLION),
    ]
    if superposed:
        marks.insert(0, ("closed form", optimal_split(rates), "o", colours.BLUE))
    with canvas(5.6, 3.4) as (figure, axes):
        axes.plot(shares, values, color=colours.BLACK, linewidth=1.4)
        if edge:
            axes.axvspan(
                0, edge, facecolor="#f1f1f1", edgecolor="#c4c4c4", hatch="///", linewidth=0
            )
        drawn = []
        for name, split, marker, colour in marks:
            if split is None:
                continue
            height = _inverse_sum(section, rates, split)
            shown = height if height <= DRAWABLE else np.nan
            drawn.append(shown)
            worth = f"{height:#.4g}" if np.isfinite(height) else "infinite"
            label = f"{name}: λ = {split[0]:.3f}, D = {worth}"
            axes.plot(split[0], shown, marker, color=colour, ms=7, mfc="none", mew=1.8, label=label)
        axes.set_xlim(0, 1)
        within = values[values <= DRAWABLE]
        if within.size:
            least = float(within.min())
            heights = [1.06 * height for height in drawn if height <= DRAWABLE]
            top = max(least + 1.5 * (least - len(rates)), *heights, 1.06 * least)
            axes.set_ylim(len(rates) - 0.02 * top, top)
        else:
            _say_infinite(axes, (1 + edge) / 2)
        if edge:
            axes.text(edge / 2, 0.5, "segment 1 can\nnever be decoded", color="#5b6670", fontsize=8,
                      ha="center", va="center", transform=axes.get_xaxis_transform(),
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 2})  # fmt: skip
        words = "/".join(f"{rate:g}" for rate in (rates if len(set(rates)) > 1 else rates[:1]))
        noise = f"{section.noise:.4g} dBm noise, {words} bit/s/Hz per segment"
        of_what = "time" if section.multiplexing == "orthogonal-airtime" else "power"
        axes.set(xlabel=f"λ, segment 1's share of the {of_what}", title=noise)
        axes.set_ylabel(r"$D = \sum_i 1/p_i$")
        axes.legend(loc="upper left", bbox_to_anchor=(0, -0.18), ncols=1)
    return figure


def probability_figure(
    section: RadioSection, rates: Sequence[float], widths: Sequence[float] | None = None
) -> Figure:
    """Decoding probability against noise, of SlimFL's segments and of each Vanilla FL width.

    `rates` has the spectral efficiency of every segment in bit/s/Hz. By default, `widths` are equal
    steps: 0.5 and 1.0 for two segments.
    """
    segments = len(rates)
    low, high = _noise_range(section, rates)
    fine = section.decoder == "outage" and not section.frequency_selective
    noises = np.linspace(low, high, 251 if fine else FEW_POINTS)
    widths = [(i + 1) / segments for i in range(segments)] if widths is None else widths
    section = section.model_copy(update={"spectral_efficiency": tuple(rates)})
    names = [title(f"vanilla-{round(width, 3)}x") for width in widths]
    palette = colours.by_name(["SlimFL", *names])
    with canvas(6.2, 3.6) as (figure, axes):
        slim = _probabilities(section, tuple((i,) for i in range(segments)), segments, noises)
        for i in range(segments):
            shade = colours.arrivals(segments)[i + 1]
            axes.plot(noises, slim[:, i], color=shade, label=f"SlimFL, segment {i + 1}")
        for i, name in enumerate(names):
            line = _probabilities(section, (tuple(range(i + 1)),), segments, noises)
            axes.plot(noises, line[:, 0], color=palette[name], linestyle="--", label=name)
        _mark_noises(axes, section, low, high)
        axes.set(xlabel="noise power, dBm", ylabel="decoding probability", xlim=(low, high))
        axes.set_ylim(0, 1.04)
        axes.legend(loc="lower left")
    return figure


def preference_figure(section: RadioSection, widths: Sequence[float], devices: int) -> Figure:
    """Which method is preferable over noise and rate, by the terms of theorem 1's bound.

    SlimFL has the best split of every place. Dots mark ties.
    """
    fine = (
        section.decoder == "outage"
        and section.path_loss not in ("umi", "uma")
        and not section.frequency_selective
    )
    rates = np.geomspace(*MAP_RATES, 37 if fine else 19)
    low, high = _noise_range(section, (1.5,) * len(widths))
    noises = np.linspace(low, high, 61 if fine else 31)
    found = preference_map(section, widths, devices, noises, rates)
    names = [title(name) for name in found.methods]
    palette = colours.by_name(names)
    with canvas(6.2, 3.9) as (figure, axes):
        from matplotlib.colors import ListedColormap

        shades = ListedColormap([palette[name] for name in names])
        drawn = np.ma.masked_equal(found.preferred, NO_METHOD)
        axes.pcolormesh(noises, rates, drawn, cmap=shades, vmin=-0.5,
                        vmax=len(names) - 0.5, alpha=0.55, shading="nearest", linewidth=0,
                        rasterized=True)  # fmt: skip
        for i in np.unique(drawn.compressed()).tolist():
            axes.plot([], [], "s", ms=9, alpha=0.55, color=palette[names[i]], label=names[i])
        if drawn.mask.any():
            axes.plot([], [], "s", ms=9, color="white", mec=colours.GREY, label="nothing arrives")
        if found.tie.any():
            row, column = np.nonzero(found.tie)
            axes.plot(noises[column], rates[row], ".", ms=2, color=colours.BLACK,
                      label=f"tie: D within {TIE:.0%}")  # fmt: skip
        now = section.spectral_efficiency
        if not isinstance(now, tuple) and MAP_RATES[0] <= now <= MAP_RATES[1]:
            axes.plot(section.noise, now, "*", ms=12, color=colours.BLACK, mfc="white", label="now")
        _mark_noises(axes, section, low, high, now=False)
        axes.set(yscale="log", xlim=(low, high), xlabel="noise power, dBm")
        axes.set_yticks([0.25, 0.5, 1, 2, 4], labels=["0.25", "0.5", "1", "2", "4"])
        axes.minorticks_off()
        axes.set_ylim(*MAP_RATES)
        axes.set_ylabel("rate of one segment, bit/s/Hz")
        axes.legend(loc="upper left", bbox_to_anchor=(0, -0.16), ncols=3)
    return figure


def bound_figure(rounds: ArrayLike, curves: Mapping[str, ArrayLike]) -> Figure:
    """Theorem 1's bound on the optimality gap over the rounds, one curve per constant B."""
    with canvas(5.6, 3.4) as (figure, axes):
        shades = (colours.VERMILLION, colours.BLUE, *colours.METHODS[2:])
        drawable = False
        for (name, values), shade in zip(curves.items(), shades, strict=False):
            curve = np.asarray(values, dtype=np.float64)
            infinite = "" if (curve <= DRAWABLE).any() else " (infinite)"
            # an empty curve still appears in the legend
            curve = np.where(curve <= DRAWABLE, curve, np.nan)
            axes.plot(np.asarray(rounds), curve, color=shade, label=name + infinite)
            drawable |= bool((curve > 0).any())
        axes.set(xscale="log", yscale="log" if drawable else "linear", xlabel="round t")
        axes.set_ylabel(r"bound on $E[F(\theta_t)] - F^*$")
        axes.legend(loc="best", title="constant B")
    return figure


def _say_infinite(axes: Axes, middle: float) -> None:
    """A note in place of curves that cannot be drawn."""
    words = "some segment\nnever arrives:\nD is infinite"
    where = axes.get_xaxis_transform()
    axes.text(
        middle, 0.5, words, color="#5b6670", fontsize=8, ha="center", va="center", transform=where
    )


def _inverse_sum(section: RadioSection, rates: Sequence[float], split: Sequence[float]) -> float:
    """D; infinite if a segment can never be decoded."""
    try:
        shared = build_coding(section, tuple(rates), tuple(split))
    except RequestError:
        return float("inf")
    with np.errstate(divide="ignore", over="ignore"):
        return float((1 / section_probabilities(section, shared)).sum())


def _noise_range(section: RadioSection, rates: Sequence[float]) -> tuple[float, float]:
    """The noise powers to show: where the probabilities fall from 1 to 0, and the present one."""
    ratio = min(link.noise_to_power for _, link in possible_links(section))
    falls = section.noise - to_db(ratio) - to_db(float(sinr_target(sum(rates))))
    middle = 5 * round(falls / 5)
    return min(middle - BELOW_DB, section.noise - 5), max(middle + ABOVE_DB, section.noise + 5)


def _configured(section: RadioSection, rates: tuple[float, ...]) -> tuple[float, ...] | None:
    split = power_split(section, rates)
    return split if len(split) == len(rates) else None


def _probabilities(
    section: RadioSection, messages: Messages, segments: int, noises: np.ndarray
) -> np.ndarray:
    sent = signal(section, messages, segments)
    return probabilities_over_noise(section, sent.coding, noises)


def _mark_noises(
    axes: Axes, section: RadioSection, low: float, high: float, now: bool = True
) -> None:
    """The paper's channels, where the path loss is the paper's, and the present noise."""
    if section.path_loss == "power-law":
        for name, noise in CHANNELS.items():
            if low <= noise <= high:
                _mark(axes, noise, f"{name} ({noise:g})", colours.GREY)
    if now and section.noise not in CHANNELS.values():
        _mark(axes, section.noise, f"now ({section.noise:.4g})", colours.PURPLE, row=1)


def _mark(axes: Axes, noise: float, label: str, colour: str, row: int = 0) -> None:
    """A line at a noise power; its label gets its own row, as others may be near."""
    axes.axvline(noise, color=colour, linewidth=1, linestyle=":")
    axes.text(noise, 1.01 + 0.05 * row, label, color=colour, fontsize=8, ha="center", va="bottom",
              transform=axes.get_xaxis_transform())  # fmt: skip
