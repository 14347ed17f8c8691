"""What more rounds change, from the archived runs of table III.

Two tables: runs that have more rounds than `standard` reads, and SlimFL's lead over the Vanilla FL
of the same width in every third of the rounds that `standard` reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from convergence import table

from lab import paper
from lab.archive import find
from lab.cell import Cell
from lab.exhibits.accuracies import grid_arm
from lab.exhibits.arms import CHANNELS, CURVES
from lab.judge import gap_words
from lab.scale import ALPHAS, scale
from slimfl.results.statistics import paired
from slimfl.round import RoundRecord

#: Accuracies are means over this number of rounds, up to every STRIDE-th.
WINDOW, STRIDE = 10, 20
THIRDS = ("first", "second", "last")
STANDARD = scale("standard")


def texts(archive: Path) -> dict[str, str]:
    """Both tables."""
    return {"further rounds": further_rounds(archive), "leads by thirds": leads_by_thirds(archive)}


def further_rounds(archive: Path) -> str:
    """Accuracies of the runs with at least STRIDE rounds beyond what `standard` reads."""
    runs = list(_further(archive))
    if not runs:
        return "No run has more rounds yet.\n"
    ends = range(2 * STRIDE, max(len(lines) for *_, lines in runs) + 1, STRIDE)
    rows = []
    for channel, alpha, (method, width), cell, lines in runs:
        mean, deviation = paper.table3(channel, alpha)[f"{method} {width}"]
        reached = [
            f"{100 * fmean(line.accuracy[width] for line in lines[end - WINDOW : end]):.1f}"
            if end <= len(lines)
            else ""
            for end in ends
        ]
        where = f"{CURVES[method, width]}, {channel}, α = {alpha:g}"
        rows.append(
            [
                where,
                str(cell.experiment.seed),
                str(cell.rounds),
                *reached,
                f"{mean:g} ± {deviation}",
            ]
        )
    headings = ["run", "seed", "`standard` reads", *(f"up to {end}" for end in ends), "the paper"]
    return table(headings, rows)


def leads_by_thirds(archive: Path) -> str:
    """SlimFL minus the Vanilla FL of the same width, in points: means over rounds and seeds.

    With several seeds, followed by the half width of the confidence interval.
    """
    rows = []
    for channel in CHANNELS:
        for alpha in ALPHAS:
            for width in ("0.5x", "1.0x"):
                leads = _leads(archive, channel, alpha, width)
                theirs = paper.table3(channel, alpha)
                lead = theirs[f"slimfl {width}"][0] - theirs[f"vanilla-{width} {width}"][0]
                means = [
                    _lead({seed: thirds[k] for seed, thirds in leads.items()})
                    for k in range(len(THIRDS))
                ]
                where = f"{channel}, α = {alpha:g}"
                rows.append([where, width, *means, str(len(leads)), f"{lead:+g}"])
    thirds = [f"{third} third" for third in THIRDS]
    headings = ["channel and data", "width", *thirds, "seeds", "the paper"]
    return table(headings, rows)


def _further(
    archive: Path,
) -> Iterator[tuple[str, float, tuple[str, str], Cell, list[RoundRecord]]]:
    for channel in CHANNELS:
        for alpha in ALPHAS:
            for curve in CURVES:
                for cell in grid_arm(channel, alpha, curve[0]).cells(STANDARD):
                    stored = find(archive, cell)
                    if stored and stored.rounds >= cell.rounds + STRIDE:
                        yield channel, alpha, curve, cell, stored.lines


def _leads(archive: Path, channel: str, alpha: float, width: str) -> dict[int, list[float]]:
    """For every seed with both runs finished, the mean lead in each third of the rounds."""
    pairs = zip(
        grid_arm(channel, alpha, "slimfl").cells(STANDARD),
        grid_arm(channel, alpha, f"vanilla-{width}").cells(STANDARD),
        strict=True,
    )
    found = {}
    for pair in pairs:
        rounds = pair[0].rounds
        ours, theirs = (lines_of(archive, cell)[:rounds] for cell in pair)
        if len(ours) == len(theirs) == rounds:
            by_round = [
                100 * (one.accuracy[width] - other.accuracy[width])
                for one, other in zip(ours, theirs, strict=True)
            ]
            cuts = [round(k * rounds / len(THIRDS)) for k in range(len(THIRDS) + 1)]
            found[pair[0].experiment.seed] = [fmean(by_round[a:b]) for a, b in pairwise(cuts)]
    return found


def _lead(by_seed: Mapping[int, float]) -> str:
    return gap_words(paired(by_seed, dict.fromkeys(by_seed, 0.0))) or "not run"


@cache
def lines_of(archive: Path, cell: Cell) -> list[RoundRecord]:
    """The archived rounds of a run; none if it is not archived."""
    stored = find(archive, cell)
    return stored.lines if stored else []
