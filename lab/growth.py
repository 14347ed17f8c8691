"""What more rounds change, from the archived runs of table III.

Two tables: runs that have more rounds than `standard` reads, and SlimFL's lead over the Vanilla FL
of the same width in every third of the rounds that `standard` reads.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import fmean

from lab import paper
from lab.archive import find
from lab.cell import Cell
from lab.exhibits.accuracies import grid_arm
from lab.exhibits.arms import CHANNELS, CURVES
from lab.judge import gap_words
from lab.question import Table
from lab.scale import ALPHAS, scale
from slimfl.results.statistics import paired
from slimfl.round import RoundRecord

#: Accuracies are means over this number of rounds, up to every STRIDE-th.
WINDOW, STRIDE = 10, 20
THIRDS = ("first", "second", "last")
WIDTHS = ("0.5x", "1.0x")


def table(name: str, archive: Path) -> Table:
    """`further rounds` or `leads by thirds`."""
    return {"further rounds": further_rounds, "leads by thirds": leads_by_thirds}[name](archive)


def further_rounds(archive: Path) -> Table:
    """Accuracies of the runs with at least STRIDE rounds beyond what `standard` reads."""
    found = [
        (channel, alpha, curve, cell, lines)
        for channel, alpha, curve in itertools.product(CHANNELS, ALPHAS, CURVES)
        for cell, lines in _archived(archive, channel, alpha, curve[0])
        if len(lines) >= cell.rounds + STRIDE
    ]
    ends = range(2 * STRIDE, max((len(each[-1]) for each in found), default=0) + 1, STRIDE)
    rows = []
    for channel, alpha, (method, width), cell, lines in found:
        mean, deviation = paper.table3(channel, alpha)[f"{method} {width}"]
        reached = [_mean(lines, width, end - WINDOW, end) for end in ends]
        rows.append([
            f"{CURVES[method, width]}, {channel}, α = {alpha:g}", str(cell.experiment.seed),
            str(cell.rounds), *("" if one is None else f"{one:.1f}" for one in reached),
            f"{mean:g} ± {deviation}",
        ])  # fmt: skip
    headings = ["run", "seed", "`standard` reads", *(f"up to {end}" for end in ends), "the paper"]
    return Table("further-rounds", "Runs that go on", headings, rows)


def leads_by_thirds(archive: Path) -> Table:
    """SlimFL minus the Vanilla FL of the same width, in points: means over rounds and seeds.

    With several seeds, followed by the half width of the confidence interval.
    """
    rows = []
    for channel, alpha, width in itertools.product(CHANNELS, ALPHAS, WIDTHS):
        ours, other = (
            {cell.experiment.seed: lines[: cell.rounds]
             for cell, lines in _archived(archive, channel, alpha, method)
             if len(lines) >= cell.rounds}
            for method in ("slimfl", f"vanilla-{width}")
        )  # fmt: skip
        cuts = [round(k * scale("standard").rounds[alpha] / len(THIRDS)) for k in range(4)]
        leads = [
            paired(*({s: _mean(lines, width, *part) or 0.0 for s, lines in runs.items()}
                     for runs in (ours, other)))
            for part in itertools.pairwise(cuts)
        ]  # fmt: skip
        printed = paper.table3(channel, alpha)
        theirs = printed[f"slimfl {width}"][0] - printed[f"vanilla-{width} {width}"][0]
        said = [gap_words(lead) or "not run" for lead in leads]
        seeds = len(ours.keys() & other.keys())
        rows.append([f"{channel}, α = {alpha:g}", width, *said, str(seeds), f"{theirs:+g}"])
    thirds = [f"{third} third" for third in THIRDS]
    headings = ["channel and data", "width", *thirds, "seeds", "the paper"]
    return Table("leads-by-thirds", "Leads by thirds of the rounds", headings, rows)


@cache
def _archived(
    archive: Path, channel: str, alpha: float, method: str
) -> list[tuple[Cell, Sequence[RoundRecord]]]:
    """The archived runs of a setting of table III, with all their rounds."""
    cells = grid_arm(channel, alpha, method).cells(scale("standard"))
    return [(cell, entry.lines) for cell in cells if (entry := find(archive, cell))]


def _mean(lines: Sequence[RoundRecord], width: str, after: int, until: int) -> float | None:
    """The mean accuracy in percent over some rounds; None where the run is shorter."""
    if len(lines) < until:
        return None
    return 100 * fmean(line.accuracy[width] for line in lines[after:until])
