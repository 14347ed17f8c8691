"""The result in plain words, computed from the summary: who leads, by how much, at what cost.

A difference within the combined deviation of both methods is a tie (`results/ties.py`); deviations
are over seeds or, with one seed, over the last evaluated rounds.
"""

from collections.abc import Sequence

from slimfl.report.tables import number_format as cells
from slimfl.results.run_summary import LAST
from slimfl.results.seed_summary import GroupSummary, Spread
from slimfl.results.summary import Summary
from slimfl.results.ties import combined_deviation, is_tie


def conclusions(summary: Summary) -> list[str]:
    """One sentence per width and scene, then what it cost."""
    sentences = []
    for scene in dict.fromkeys(row.scene for row in summary.groups):
        rows = [row for row in summary.groups if row.scene == scene]
        runs = [row for row in rows if not row.computed]
        widths = dict.fromkeys(width for row in runs for width in row.accuracy)
        sentences += [
            _ranking(scene, width, [row for row in runs if width in row.accuracy])
            for width in sorted(widths, key=lambda name: float(name[:-1]))
        ]
        sentences += _cost(rows)
    return sentences


def caveats(summary: Summary) -> list[str]:
    """What a reader must know before trusting the numbers."""
    notes = []
    runs = [row for row in summary.groups if not row.computed]
    for row in runs:
        if not row.complete:
            done = f"{row.rounds_done} of {row.rounds_asked} rounds"
            notes.append(f"{row.name} ({row.scene}) has done {done}; its numbers are preliminary.")
    refused = sum(row.refused for row in runs)
    if refused:
        updates = "1 update" if refused == 1 else f"{refused:,} updates"
        notes.append(f"The server refused {updates}; run.log in the run's folder says why.")
    if all(len(row.seeds) == 1 for row in runs):
        notes.append(
            "Every method ran under one seed, so a deviation is that of the last evaluated rounds "
            f"(at most {LAST}), not between seeds."
        )
    elif any(len(row.seeds) == 1 for row in runs):
        notes.append(
            "Where a method ran under one seed, its deviation is that of the last evaluated rounds "
            f"(at most {LAST}); else it is the deviation between seeds."
        )
    return notes


def _ranking(scene: str, width: str, rows: Sequence[GroupSummary]) -> str:
    def mean(row: GroupSummary) -> float:
        return row.accuracy[width].final.mean

    first, *others = sorted(rows, key=mean, reverse=True)
    where = f"At width {width} over the {scene},"
    if not others:
        return f"{where} {_with_percent(first, width)} is the only method at this width."
    tied: list[GroupSummary] = []
    behind: list[GroupSummary] = []
    for row in others:
        both = (row.accuracy[width].deviation, first.accuracy[width].deviation)
        (tied if is_tie(mean(row), mean(first), *both) else behind).append(row)
    if not tied:
        gap = _points(mean(first) - mean(behind[0]))
        lead = f"{where} {_with_percent(first, width)} leads, {gap} ahead of "
        return lead + f"{_with_percent(behind[0], width)}."
    gap = _points(mean(first) - mean(tied[-1]))
    own = first.accuracy[width].deviation
    within = 100 * max(combined_deviation(own, row.accuracy[width].deviation) for row in tied)
    names = _and([_with_percent(row, width) for row in (first, *tied)])
    sentence = f"{where} {names} tie: {gap} apart, within their combined deviation ({within:.1f})"
    if behind:
        gap = _points(mean(first) - mean(behind[0]))
        return f"{sentence}; {_with_percent(behind[0], width)} is {gap} behind."
    return sentence + "."


def _cost(rows: Sequence[GroupSummary]) -> list[str]:
    """SlimFL's one run against one Vanilla FL run for every width."""
    slim = next((row for row in rows if row.method == "slimfl"), None)
    every = next((row for row in rows if row.computed), None)
    if slim is None or every is None:
        return []
    widths = _and(list(slim.accuracy))
    sentences = [
        f"Over the {slim.scene}, serving widths {widths} costs {_energy(slim.energy_j)} on the air "
        f"with one run of {slim.name}, {_energy(every.energy_j)} with a run of Vanilla FL for each "
        f"({_times(every.energy_j, slim.energy_j)})."
    ]
    if slim.energy_until_j and every.energy_until_j:
        own, theirs = slim.energy_until_j, every.energy_until_j
        sentences.append(
            f"Until convergence it is {_energy(own)} against {_energy(theirs)} "
            f"({_times(theirs, own)})."
        )
    return sentences


def _with_percent(row: GroupSummary, width: str) -> str:
    return f"{row.name} ({100 * row.accuracy[width].final.mean:.1f} %)"


def _points(fraction: float) -> str:
    shown = f"{100 * fraction:.1f}"
    return f"{shown} point" if shown == "1.0" else f"{shown} points"


def _energy(joule: Spread) -> str:
    return f"{cells.number(joule)} J"


def _times(one: Spread, other: Spread) -> str:
    return f"{one.mean / other.mean:.2f} times as much" if other.mean else "no comparison"


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
