"""The pictures of the documentation that are drawn from the library's own formulas.

`python docs/fragments.py` draws them into docs/images, with those of committed results.
"""

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from slimfl.data import partition
from slimfl.experiment import DataSection, RadioSection
from slimfl.nn import SlimConv2d, segments
from slimfl.radio import noise_to_power, signal
from slimfl.radio.gain import best_gain, ceiling, most_favourable_snr, price_of_a_safer_base_db
from slimfl.report.figures.link import probability_figure, split_figure
from slimfl.report.figures.runs import partition_figure

LH, RH, INK, GREY = "#2a6f97", "#e07a2f", "#333333", "#9a9a9a"
STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
}
#: Bits of the base as a share of the model's, with their names, and what the base alone is worth.
SHARES = {1 / 2: "1/2", 1 / 3: "1/3", 1 / 4: "1/4", 1 / 8: "1/8", 1 / 16: "1/16"}
WORTH, RATE = (0.5, 0.6, 0.7, 0.8, 0.9), 3.0


def segments_picture() -> Figure:
    """The weights of one layer, coloured by the segment that each belongs to."""
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.2))
    for ax, widths in zip(axes, [(0.5, 1.0), (0.25, 0.5, 0.75, 1.0)], strict=True):
        layer = SlimConv2d(16, 16, 1, bias=False)
        number = segments(layer, widths).segment_of.reshape(16, 16)
        colours = [LH, RH] if len(widths) == 2 else [LH, "#61a5c2", "#f2b880", RH]
        ax.imshow(number, cmap=mpl.colors.ListedColormap(colours), interpolation="nearest")
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        for k in range(17):
            ax.axhline(k - 0.5, color="white", lw=0.6)
            ax.axvline(k - 0.5, color="white", lw=0.6)
        before = 0
        for index, width in enumerate(widths):
            side = round(16 * width)
            ax.add_patch(Rectangle((-0.5, -0.5), side, side, fill=False, ec=INK, lw=1.4))
            name = f"{index + 1}"
            if len(widths) == 2:
                name = f"segment {index + 1}\n({'LH' if index == 0 else 'RH'})"
            middle = (before + side) / 2 - 0.5
            ax.text(middle, middle, name, ha="center", va="center", color="white", weight="bold")
            ax.text(side - 0.5, 16.1, f"{width}x", ha="right", va="center", color=INK)
            before = side
        ax.set_xlabel("input channels", labelpad=14)
        ax.set_ylabel("output channels")
    return figure


def superposition_picture() -> Figure:
    """One transmission of a device: power, then what the server can decode at which gain."""
    section = RadioSection(channel="poor")
    sent = signal(section, ((0,), (1,)), 2).coding
    low, high = sent.thresholds(noise_to_power(section))
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(7.2, 2.9), gridspec_kw={"width_ratios": [1, 2.1]}
    )
    left.bar(0, sent.split[0], width=0.9, color=LH)
    left.bar(0, sent.split[1], width=0.9, bottom=sent.split[0], color=RH)
    left.text(0, sent.split[0] / 2, "segment 1 (LH)", ha="center", va="center", color="white")
    left.text(0, 1 - sent.split[1] / 2, "segment 2 (RH)", ha="center", va="center", color="white")
    left.set(xticks=[], ylabel="share of the transmit power", ylim=(0, 1), xlim=(-0.5, 0.5))

    gain = np.linspace(0, 2.2, 400)
    right.plot(gain, np.exp(-gain), color=INK, lw=1.2)
    spans = [
        (0, low, GREY, "nothing"),
        (low, high, LH, "LH: 0.5x"),
        (high, 2.2, RH, "LH and RH: 1.0x"),
    ]
    for start, end, colour, label in spans:
        inside = (gain >= start) & (gain <= end)
        right.fill_between(
            gain[inside], np.exp(-gain[inside]), color=colour, alpha=0.8, label=label
        )
    right.set(xlabel="fading gain g", ylabel="density", xlim=(0, 2.2), ylim=(0, 1.05))
    right.legend(title="what the server decodes", frameon=False)
    return figure


def partition_picture(alpha: float) -> Figure:
    """How a Dirichlet draw deals ten classes of equal size to ten devices."""
    labels = np.arange(60_000) % 10
    dealt = partition(labels, 10, DataSection(alpha=alpha), seed=0)
    return partition_figure(dealt.class_counts(labels, 10).tolist(), f"alpha = {alpha:g}")


def gain_picture() -> Figure:
    """The gain over the SNR, for three rates."""
    figure, panels = plt.subplots(1, 3, figsize=(7.2, 2.7), sharey=True)
    snr_db = np.linspace(0, 32, 161)
    for ax, rate in zip(panels, (1.5, 3.0, 6.0), strict=True):
        for share in (1 / 2, 1 / 3, 1 / 8):
            rates = (rate * share, rate * (1 - share))
            gains = [two_segments(10 ** (each / 10), rates, 0.8) for each in snr_db]
            ax.plot(snr_db, np.array(gains) * 100, label=f"base of {SHARES[share]}")
        ax.axhline((ceiling((0.8, 1)) - 1) * 100, ls=":", color="0.5")
        ax.set(title=f"{rate:g} bit/s/Hz", xlabel="mean SNR, dB")
    panels[0].set(ylabel="gain over the better\nsingle message, %", ylim=(0, None))
    panels[0].legend(frameon=False, fontsize=8)
    return figure


def two_segments(snr: float, rates: tuple[float, float], worth: float) -> float:
    """The gain, by the power identity: the first threshold determines the second."""
    low, all_of = 2 ** rates[0] - 1, 2 ** sum(rates) - 1
    first = np.linspace(low, all_of, 4001)[1:] / snr
    second = (all_of - low) / (snr - low / first)
    superposed = (worth * np.exp(-first) + (1 - worth) * np.exp(-second)).max()
    single = max(worth * np.exp(-low / snr), np.exp(-all_of / snr))
    return float(max(superposed / single - 1, 0))


def gains_table() -> dict[str, list]:
    """The largest gains of superposition, and the price of a safer base."""
    rows = []
    for share, name in SHARES.items():
        rates = (RATE * share, RATE * (1 - share))
        best = [best_gain(most_favourable_snr(rates, w), rates, (w, 1)).share for w in WORTH]
        price = f"{price_of_a_safer_base_db(rates, 2):.2f} dB"
        rows.append([name, *(f"{each:.1%}" for each in best), price])
    rows.append(["ceiling", *(f"{ceiling((worth, 1)) - 1:.0%}" for worth in WORTH), ""])
    return {"headings": [f"worth {worth:g}" for worth in WORTH], "rows": rows}


PICTURES = {
    "segments": segments_picture,
    "superposition": superposition_picture,
    "superposition-gain": gain_picture,
    # equation (5) against the noise, and D = 1/p1 + 1/p2 against lambda
    "probabilities": lambda: probability_figure(RadioSection(channel="poor"), (1.5, 1.5)),
    "split": lambda: split_figure(RadioSection(channel="poor"), (1.5, 1.5)),
    "partition-0.1": lambda: partition_picture(0.1),
    "partition-10": lambda: partition_picture(10.0),
}
