"""Figure 3: how the classes are distributed over the devices."""

from __future__ import annotations

import numpy as np

from lab.reproduction.cells.scale import PAPER_DEVICES, Scale
from lab.reproduction.exhibits.exhibit import Exhibit, Recipe, Runs, Table
from lab.reproduction.judging.verdict import Claim, Comparison
from slimfl.data import Dataset, load_section, partition
from slimfl.experiment import DataSection
from slimfl.report.figures import colours
from slimfl.report.figures.drawing import grid

ALPHAS = (0.1, 10.0)


def class_counts(dataset: Dataset, alpha: float, seed: int) -> np.ndarray:
    """Samples [device, class] of a dataset."""
    section = DataSection(alpha=alpha)
    dealt = partition(dataset.train.labels, PAPER_DEVICES, section, seed)
    return dealt.class_counts(dataset.train.labels, dataset.classes)


def unevenness(counts: np.ndarray) -> float:
    """Mean total-variation distance of the devices' class distributions from the overall one."""
    mixes = counts / counts.sum(axis=1, keepdims=True)
    whole = counts.sum(axis=0) / counts.sum()
    return float(np.abs(mixes - whole).sum(axis=1).mean() / 2)


def show(scale: Scale, runs: Runs) -> Exhibit:
    """Distribute the data as every run does, and measure how uneven the devices are."""
    dataset = load_section(DataSection())  # that of all runs
    counts = {alpha: class_counts(dataset, alpha, seed=0) for alpha in ALPHAS}
    distances = {
        alpha: [unevenness(class_counts(dataset, alpha, seed)) for seed in range(scale.seeds)]
        for alpha in ALPHAS
    }
    with grid(1, 2, 7.2, 3.2) as (figure, all_axes):
        for axes, (alpha, table) in zip(all_axes, counts.items(), strict=True):
            left = np.zeros(PAPER_DEVICES)
            for label, colour in enumerate(colours.CLASSES):
                axes.barh(range(PAPER_DEVICES), table[:, label], left=left, color=colour,
                          edgecolor="white", linewidth=0.4, label=str(label))  # fmt: skip
                left += table[:, label]
            axes.set(xlabel="training samples", ylabel="device", title=f"α = {alpha:g}")
            axes.set_yticks(range(PAPER_DEVICES))
            axes.invert_yaxis()
        handles, labels = all_axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=10, title="class")
    return Exhibit(
        name="fig3",
        title="Figure 3: data distributions",
        paper="At α = 0.1 most devices hold a few classes; at α = 10 all hold nearly the same mix.",
        table=Table(
            ["α", "distance of a device's class mix from the whole", "smallest and largest device"],
            [
                [
                    f"{a:g}",
                    f"{np.mean(distances[a]):.3f}",
                    f"{counts[a].sum(axis=1).min():,} and {counts[a].sum(axis=1).max():,} samples",
                ]
                for a in ALPHAS
            ],
        ),
        claims=[
            Claim(
                "Devices differ more at alpha = 0.1 than at alpha = 10",
                "figure 3",
                tuple(
                    Comparison(
                        f"alpha = {a:g}",
                        float(np.mean(distances[a])),
                        float(np.std(distances[a])),
                        scale.seeds,
                        by_seed=dict(enumerate(distances[a])),
                    )
                    for a in ALPHAS
                ),
                order=((0, 1),),
            )
        ],
        notes=[
            "The distance is total variation: 0 if all devices are alike, 0.9 if every device "
            "holds one class."
        ],
        figure=figure,
    )


FIG3 = Recipe("fig3", lambda scale: [], show)
