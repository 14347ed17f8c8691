"""Tables, pictures and sentences of the page on theorem 1, from docs/results/convex.json."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from measured import read
from two_modes import save

from slimfl.report.figures import colours
from slimfl.report.figures.drawing import grid

Rows = list[dict[str, Any]]


def texts() -> dict[str, str]:
    """Tables and sentences."""
    document = read("convex")
    made = {
        "command": command(document),
        "bounds": bounds_table(document["bounds"]),
        "lemma": lemma_table(document["lemma_1"]),
        "split": split_words(document["split"]),
        "weights": weights_words(document["weights"]),
        "selection": selection_table(document["selection"]),
        "counts": counts_table(document["counts"]),
        "noiseless": noiseless_table(document["noiseless"]),
        "aggregation": aggregation_table(document["aggregation"]),
        "optimum": optimum_table(document["at_optimum"]),
        "curvature": curvature_table(document["curvature"]),
    }
    return {f"convex-{name}": text for name, text in made.items()}


def draw(folder: Path) -> None:
    """The pictures."""
    document = read("convex")
    bounds_picture(document, folder / "convex-bounds.svg")
    sweeps_picture(document, folder / "convex-sweeps.svg")


def command(document: dict[str, Any]) -> str:
    """Where the numbers come from."""
    return (
        f"All numbers are from `{document['command']}`: {document['devices']} devices, "
        f"{document['repetitions']} repetitions of {document['rounds']:,} rounds, variances over "
        f"{document['draws']:,} rounds, seed {document['seed']}. The channels are "
        + ", ".join(f"{name} ({noise:g} dBm)" for name, noise in document["noise_dbm"].items())
        + "; four segments have half the rate of two.\n"
    )


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def bounds_table(rows: Rows) -> str:
    """The largest measured share of each bound."""
    return table(
        ["segments", "channel", "non-IID", "of the paper's", "of the sharper",
         "of the sharper, last round"],
        (
            [
                str(row["segments"]),
                row["channel"],
                f"{row['non_iid']:g}",
                percent(row["share_of_paper"]),
                percent(row["share_of_sharp"]),
                percent(row["last_share_of_sharp"]),
            ]
            for row in rows
        ),
    )  # fmt: skip


def lemma_table(rows: Rows) -> str:
    """The variance and what bounds it."""
    return table(
        ["segments", "channel", "measured", "exact", "tight", "sharper", "paper's"],
        (
            [str(row["segments"]), row["channel"]]
            + [f"{row[key]:.4g}" for key in ("measured", "exact", "tight", "sharp", "paper")]
            for row in rows
        ),
    )


def split_words(found: dict[str, Any]) -> str:
    """Where the optima of lambda lie."""
    level, isotropic = found["level"], found["isotropic"]
    return (
        f"Corrected closed form: {found['proposition_1']:.3f}; its exact optimum on this channel: "
        f"{found['proposition_1_numeric']:.3f}. Measured with level noise: "
        f"**{level['best_by_variance']:.3f}** by the variance, **{level['best_by_gap']:.3f}** by "
        f"the gap. Measured with isotropic noise: **{isotropic['best_by_variance']:.3f}** by the "
        f"variance, **{isotropic['best_by_gap']:.3f}** by the gap, where the exact variance is "
        f"lowest at {isotropic['best_exact']:.3f}. At the split of proposition 1 the isotropic "
        f"variance is {excess(found, isotropic['exact']):.1%} above its lowest.\n"
    )


def excess(found: dict[str, Any], values: list[float]) -> float:
    """How far a curve is above its lowest at the split of proposition 1."""
    at = min(
        range(len(values)),
        key=lambda i: abs(found["lambda"][i] - found["proposition_1_numeric"]),
    )
    return values[at] / min(values) - 1


def weights_words(found: dict[str, Any]) -> str:
    """Where the optima of w_1 lie."""
    names = {
        "bound": "the paper's bound with constants held fixed",
        "bound_own_constants": "the paper's bound with $L$, $\\mu$ and $\\Delta_1$ of each $F$",
        "variance_shared_noise": "variance, one sample for all widths",
        "variance_independent_noise": "variance, a sample for each width",
        "variance_independent_noise_segment_1": "the same, in segment 1 alone",
        "gap": "gap of each $F$ in the last round",
    }
    ends = (found["w_1"][0], found["w_1"][-1])
    rows = []
    for key, name in names.items():
        best = found["best"][key]
        rows.append([name, f"{best:.2f}" + (" (end of the range)" if best in ends else "")])
    return table(["what", "lowest at $w_1$"], rows)


def selection_table(rows: Rows) -> str:
    """Variance from which devices were decoded."""
    return table(
        ["channel", "non-IID", "from noise", "from selection", "selection, exact",
         "selection / noise", "all / sharper", "all / paper's"],
        (
            [
                row["channel"],
                f"{row['non_iid']:g}",
                f"{row['noise']:.3g}",
                "0" if row["non_iid"] == 0 else f"{row['selection']:.3g}",
                f"{row['selection_exact']:.3g}",
                f"{row['selection_to_noise']:.3g}",
                emphasised(row["total_to_sharp"]),
                emphasised(row["total_to_paper"]),
            ]
            for row in rows
        ),
    )  # fmt: skip


def counts_table(rows: Rows) -> str:
    """Deliveries against what the proof assumes."""
    return table(
        ["segments", "channel", "$K p_i$", "nobody delivers", "noise / that at $K p_i$"],
        (
            [
                str(row["segments"]),
                row["channel"],
                ", ".join(f"{value:.2f}" for value in row["expected"]),
                ", ".join(f"{value:.2g}" for value in row["nobody"]),
                ", ".join(f"{value:.3f}" for value in row["noise_to_assumed"]),
            ]
            for row in rows
        ),
    )


def noiseless_table(rows: Rows) -> str:
    """The bound without sampling noise."""
    return table(
        ["noise, dBm", "$K p_2$", "somebody delivers", "gap", "bound", "gap / bound"],
        (
            [
                f"{row['noise_dbm']:g}",
                f"{row['expected_last']:.2g}",
                percent(row["somebody_last"]),
                f"{row['last_gap']:.2g}",
                f"{row['bound']:.2g}",
                emphasised(row["last_share_of_paper"]),
            ]
            for row in rows
        ),
    )


def aggregation_table(rows: Rows) -> str:
    """Readings of the server's average."""
    return table(
        ["channel", "average", "first gap", "last gap", "largest share of the sharper bound",
         "of the paper's"],
        (
            [
                row["channel"],
                row["aggregation"],
                f"{row['first_gap']:.2g}",
                f"{row['last_gap']:.2g}",
                emphasised(row["share_of_sharp"]),
                emphasised(row["share_of_paper"]),
            ]
            for row in rows
        ),
    )  # fmt: skip


def optimum_table(rows: Rows) -> str:
    """Training that begins at the optimum."""
    return table(
        ["channel", "$\\delta$", "last gap", "gap / sharper bound", "gap / paper's bound"],
        (
            [
                row["channel"],
                f"{row['delta']:g}",
                f"{row['last_gap']:.2g}",
                emphasised(row["last_share_of_sharp"]),
                emphasised(row["last_share_of_paper"]),
            ]
            for row in rows
        ),
    )


def curvature_table(rows: Rows) -> str:
    """Strong convexity with and without masks."""
    return table(
        ["widths", "$\\mu$ of every $F^k$", "$\\mu$ of $F$", "$L$"],
        (
            [str(row["segments"])]
            + [
                f"{row[key]:.3f}"
                for key in ("strong_convexity_local", "strong_convexity", "smoothness")
            ]
            for row in rows
        ),
    )


def percent(share: float) -> str:
    """A share in per cent, two digits."""
    return f"{digits(100 * share)}%"


def digits(value: float) -> str:
    """Two digits, or a whole number."""
    return f"{value:.2g}" if value < 99 else f"{value:,.0f}"


def emphasised(share: float) -> str:
    """A share of a bound; bold where the bound is broken."""
    return f"**{digits(share)}**" if share > 1 else digits(share)


def bounds_picture(document: dict[str, Any], target: Path) -> None:
    """Gap and bounds, a panel for every number of segments and channel."""
    channels = list(document["noise_dbm"])
    with grid(2, len(channels), 8.4, 4.8) as (figure, axes):
        for row in document["bounds"]:
            place = (row["segments"] == 4) * len(channels) + channels.index(row["channel"])
            ax, iid = axes[place], row["non_iid"] == 0
            style = "-" if iid else "--"
            if iid:
                ax.plot(row["round"], row["bound_paper"], color=colours.VERMILLION, label="paper's")
                ax.plot(row["round"], row["bound_sharp"], color=colours.BLUE, label="sharper")
                ax.fill_between(row["round"], row["low"], row["high"], color="#cccccc", lw=0)
            label = "measured, IID" if iid else "measured, non-IID"
            ax.plot(row["round"], row["measured"], style, color=colours.BLACK, label=label)
            ax.set(xscale="log", yscale="log", ylim=(5e-5, 3e3))
            ax.set_title(f"S = {row['segments']}, {row['channel']}")
        axes[0].legend(fontsize=7, loc="lower left")
        figure.supxlabel("round t", fontsize=9)
        figure.supylabel(r"$E[F(\theta_t)] - F^*$", fontsize=9)
        save(figure, target)


def sweeps_picture(document: dict[str, Any], target: Path) -> None:
    """What the split and the weights do, each curve relative to its lowest value."""
    split, weights = document["split"], document["weights"]
    with grid(1, 2, 8.4, 4.4) as (figure, (left, right)):
        sweep(left, split["lambda"], {
            "D = 1/p1 + 1/p2": split["D"],
            "variance, level noise": split["level"]["variance"],
            "gap, level noise": split["level"]["gap_times_round"],
            "variance, isotropic noise": split["isotropic"]["variance"],
            "gap, isotropic noise": split["isotropic"]["gap_times_round"],
        })  # fmt: skip
        left.axvline(split["proposition_1_numeric"], color=colours.GREY, linestyle=":")
        left.set(xlabel="λ, segment 1's share of the power", ylim=(0.98, 1.4))
        sweep(right, weights["w_1"], {
            "bound": weights["bound"],
            "bound, own constants": weights["bound_own_constants"],
            "variance, shared noise": weights["variance_shared_noise"],
            "variance, independent noise": weights["variance_independent_noise"],
            "gap": weights["gap"],
        })  # fmt: skip
        right.axvline(weights["proposition_2"], color=colours.GREY, linestyle=":")
        right.set(xlabel="w1, weight of the narrow width", ylim=(0.95, 2.5))
        left.set_ylabel("relative to the lowest")
        save(figure, target)


def sweep(ax: Any, places: list[float], curves: dict[str, list[float]]) -> None:
    """Curves over one choice."""
    shades = (colours.VERMILLION, colours.BLUE, colours.SKY, colours.GREEN, colours.ORANGE)
    for (name, values), shade in zip(curves.items(), shades, strict=True):
        lowest = min(values)
        ax.plot(places, [value / lowest for value in values], color=shade, label=name)
    ax.legend(fontsize=7.5, loc="upper left", bbox_to_anchor=(0, -0.15))
