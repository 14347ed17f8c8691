"""Table III: accuracy over channel x alpha x method."""

from __future__ import annotations

from lab.reproduction import paper
from lab.reproduction.cells.scale import ALPHAS, Scale
from lab.reproduction.exhibits import table3_runs as grid
from lab.reproduction.exhibits.exhibit import (
    Exhibit,
    Final,
    Recipe,
    Runs,
    Table,
    accuracy,
    fluctuation,
    same_seeds,
)
from lab.reproduction.judging.verdict import Claim, Measure, Subject


def show(scale: Scale, runs: Runs) -> Exhibit:
    """Every accuracy compared with the paper's, column by column, and the text's claims."""
    finals = {
        (channel, alpha, *curve): grid.final(scale, runs, channel, alpha, *curve)
        for channel in grid.CHANNELS
        for alpha in ALPHAS
        for curve in grid.CURVES
    }
    rows = []
    for curve in grid.CURVES:
        for source in ("paper", "ours"):
            row = [grid.NAMES[curve], source]
            for channel in grid.CHANNELS:
                for alpha in ALPHAS:
                    mean, deviation = paper.TABLE3[channel, alpha][" ".join(curve)]
                    ours = finals[channel, alpha, *curve]
                    row.append(f"{mean:g} ± {deviation}" if source == "paper" else _cell(ours))
            rows.append(row)
    headings = [f"{channel}, α = {a:g}" for channel in grid.CHANNELS for a in ALPHAS]
    return Exhibit(
        name="table3",
        title="Table III: accuracy under different channels and data distributions",
        paper="On the poor channel with very uneven data SlimFL is ahead of both Vanilla FL and "
        "fluctuates less; with nearly even data and a good channel all are alike.",
        table=Table(["method", "", *headings], rows),
        claims=[
            *(_column(finals, channel, alpha) for channel in grid.CHANNELS for alpha in ALPHAS),
            *_text(finals),
        ],
        notes=[
            "± is the standard deviation over the last rounds of a run, which is how we read the "
            "paper's (its text calls it stability); the deviation over seeds is in brackets. "
            f"The last rounds are the last {100 * scale.last_share:g}% of all.",
            scale.shortened,
        ],
    )


def _cell(final: Final | None) -> str:
    return "not run" if final is None else str(final)


Finals = dict[tuple[str, float, str, str], Final | None]


def _column(finals: Finals, channel: str, alpha: float) -> Claim:
    comparisons = []
    column = same_seeds([finals[channel, alpha, *curve] for curve in grid.CURVES])
    for curve, final in zip(grid.CURVES, column, strict=True):
        mean, deviation = paper.TABLE3[channel, alpha][" ".join(curve)]
        comparisons.append(accuracy(grid.NAMES[curve], final, mean, deviation))
    return Claim(
        f"Accuracy on the {channel} channel at alpha = {alpha:g}",
        f"table III, {channel}, alpha = {alpha:g}",
        tuple(comparisons),
        pairs=((1, 3), (0, 2)),  # SlimFL and the Vanilla FL of the same width
        about=Subject(Measure.ACCURACY, channel, alpha),
    )


def _text(finals: Finals) -> list[Claim]:
    """Section VI-C's claims about the table."""

    def at(alpha: float, places: list[tuple[str, int]]) -> list[tuple[str, Final | None]]:
        curves = [(channel, grid.CURVES[index]) for channel, index in places]
        names = [f"{grid.NAMES[curve]}, {channel}" for channel, curve in curves]
        found = same_seeds([finals[channel, alpha, *curve] for channel, curve in curves])
        return list(zip(names, found, strict=True))

    worst = at(0.1, [("poor", index) for index in range(4)])
    best = at(10.0, [(channel, index) for index in (1, 3) for channel in grid.CHANNELS])
    printed = [87, 87, 86, 82]
    deviations = [1.1, 0.9, 4.3, 4.7]
    return [
        Claim(
            "SlimFL-1.0x is ahead of Vanilla FL-1.0x on the poor channel at alpha = 0.1",
            "section VI-C, erratum E9",
            (accuracy(*worst[1]), accuracy(*worst[3])),
            order=((0, 1),),
        ),
        Claim(
            "On the poor channel at alpha = 0.1 both widths of SlimFL fluctuate less from round to "
            "round than Vanilla FL does",
            "section VI-C",
            tuple(
                fluctuation(grid.NAMES[curve], final)
                for curve, (_, final) in zip(grid.CURVES, worst, strict=True)
            ),
            order=((2, 0), (3, 1)),
            about=Subject(Measure.FLUCTUATION, "poor", 0.1),
        ),
        Claim(
            "At alpha = 10 the poor channel costs Vanilla FL-1.0x four points and SlimFL-1.0x none",
            "section VI-C",
            tuple(
                accuracy(*each, mean, deviation)
                for each, mean, deviation in zip(best, printed, deviations, strict=True)
            ),
            pairs=((0, 1), (2, 3)),  # the good channel and the poor one
        ),
    ]


TABLE3 = Recipe("table3", grid.all_cells, show)
