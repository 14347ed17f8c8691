"""Figure 6: the number of devices."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

from lab.reproduction import paper
from lab.reproduction.cells.cell import Cell, cell
from lab.reproduction.cells.scale import Scale
from lab.reproduction.exhibits.exhibit import (
    Exhibit,
    Final,
    Recipe,
    Runs,
    Table,
    accuracy,
    final,
    shown,
)
from lab.reproduction.judging.verdict import Claim, Comparison
from slimfl.report.figures import colours
from slimfl.report.figures.drawing import grid
from slimfl.results import RunRecord

ALPHAS = (0.1, 1.0)
WIDTHS = ("0.5x", "1.0x")
#: Number of rounds behind an accuracy at equal local steps.
EQUAL_ROUNDS = 5


def setting(scale: Scale, alpha: float, devices: int) -> list[Cell]:
    """One number of devices with every seed; 10 devices are table III's runs."""
    return [
        cell(scale, alpha=alpha, devices=devices, seed=seed)
        for seed in range(scale.seeds_elsewhere)
    ]


def cells(scale: Scale) -> list[Cell]:
    """All runs."""
    return [c for a in ALPHAS for k in scale.device_counts for c in setting(scale, a, k)]


def show(scale: Scale, runs: Runs) -> Exhibit:
    """Final accuracy against the number of devices."""
    counts = scale.device_counts
    finals = {
        (alpha, devices, width): final(
            runs, setting(scale, alpha, devices), width, scale.last_rounds(alpha)
        )
        for alpha in ALPHAS
        for devices in counts
        for width in WIDTHS
    }
    with grid(1, 2, 6.8, 3.0) as (figure, all_axes):
        for axes, alpha in zip(all_axes, ALPHAS, strict=True):
            for width, dash in zip(WIDTHS, ("--", "-"), strict=True):
                known = [(k, f) for k in counts if (f := finals[alpha, k, width])]
                axes.errorbar(
                    [k for k, _ in known], [f.mean for _, f in known],
                    [f.deviation for _, f in known], color=colours.BLUE, linestyle=dash,
                    marker="o", ms=4, capsize=3, label=f"SlimFL-{width}",
                )  # fmt: skip
            axes.set(xlabel="devices", ylabel="accuracy, %", title=f"α = {alpha:g}")
            axes.legend(loc="best", handlelength=3)  # long enough to distinguish dashes
    claims = [
        Claim(
            f"Accuracy at {width} is higher with {counts[-1]} devices than with {counts[0]}, "
            f"alpha = {alpha:g}",
            "section VI-B, figure 6",
            tuple(
                accuracy(f"{k} devices", finals[alpha, k, width]) for k in (counts[-1], counts[0])
            ),
            order=((0, 1),),
        )
        for alpha in ALPHAS
        for width in WIDTHS
    ]
    claims.append(
        Claim(
            "SlimFL reaches 79% at 0.5x and 85% at 1.0x with enough devices",
            "section VI-B, figure 6",
            tuple(
                _best([finals[a, k, width] for a in ALPHAS for k in counts], width, printed)
                for width, printed in zip(WIDTHS, paper.DEVICES_ACCURACY, strict=True)
            ),
            doubt="Ours is the best of all settings, and the largest of several numbers is high by "
            "chance alone.",
        )
    )
    if {20, 70} <= set(counts):
        claims.append(
            Claim(
                "With 70 devices the 0.5x model is ahead of the 1.0x model with 20, alpha = 0.1",
                "section VI-B, figure 6",
                (
                    accuracy("0.5x, 70 devices", finals[0.1, 70, "0.5x"]),
                    accuracy("1.0x, 20 devices", finals[0.1, 20, "1.0x"]),
                ),
                order=((0, 1),),
            )
        )
    return Exhibit(
        name="fig6",
        title="Figure 6: number of devices",
        paper="Accuracy rises with the number of devices; at α = 0.1 the 0.5x model with more than "
        "70 devices beats the 1.0x model with 20.",
        table=Table(
            ["devices", *(f"α = {a:g}, {w}" for a in ALPHAS for w in WIDTHS)],
            [
                [f"{k}", *(str(finals[a, k, w] or "not run") for a in ALPHAS for w in WIDTHS)]
                for k in counts
            ],
        ),
        claims=claims,
        notes=[
            "Poor channel. All devices share the 60,000 training images, so with more devices, "
            "each has fewer; the paper does not say whether its data grow with the devices. Local "
            "work is divided in the same way: a round uses the same number of images for any "
            "number of devices.",
            *_at_equal_steps(scale, runs),
            "Whiskers show the deviation over seeds or, for a single seed, over its last rounds.",
            scale.shortened,
        ],
        figure=figure,
    )


def _at_equal_steps(scale: Scale, runs: Runs) -> list[str]:
    """Accuracies after as many local steps of each device as with the most devices at the end.

    The more devices there are, the fewer images each has, and the fewer steps an epoch has.
    """
    notes = []
    for alpha in ALPHAS:
        found = []
        for devices in scale.device_counts:
            records = shown(runs, setting(scale, alpha, devices))
            until = round(scale.rounds[alpha] * devices / scale.device_counts[-1])
            if not records or min(len(record.lines) for record in records) < until:
                break
            means = [_mean_until(records, until, width) for width in WIDTHS]
            found.append(f"{' / '.join(means)}% with {devices} devices (round {until})")
        else:
            notes.append(
                f"α = {alpha:g}, at equal local steps per device, 0.5x / 1.0x: {', '.join(found)}; "
                f"each is the mean over at most {EQUAL_ROUNDS} rounds up to that one."
            )
    return notes


def _mean_until(records: list[RunRecord], until: int, width: str) -> str:
    tested = [
        100 * line.accuracy[width]
        for record in records
        for line in record.lines
        if until - EQUAL_ROUNDS < line.round <= until and width in line.accuracy
    ]
    return f"{fmean(tested):.1f}" if tested else "not tested"


def _best(finals: list[Final | None], width: str, printed: float) -> Comparison:
    known = [each for each in finals if each]
    if len(known) < len(finals):
        return accuracy(width, None, printed)
    best = max(known, key=lambda each: each.mean).compare(width, printed)
    return replace(best, finished=all(each.finished for each in known))


FIG6 = Recipe("fig6", cells, show)
