"""The result in sentences, computed from the summary: who leads, by how much, at what cost.

Methods are compared in pairs by seed (`results/statistics.py`), and every difference is shown with
its 95% interval. One seed tells nothing apart; fewer than five are called preliminary. A network
that is not better than guessing has not learned yet and is not ranked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from slimfl.methods.names import title
from slimfl.report.tables import NONE, Column, RunTable, number, percent, rounds, width_names
from slimfl.results.rules import ERRORS, LAST
from slimfl.results.statistics import Paired, paired
from slimfl.results.summary import GroupRow, Summary, footing


@dataclass(frozen=True)
class Ranking:
    """The methods of one scene at one width, each list from best to worst."""

    scene: str
    width: str
    leaders: list[GroupRow]
    """The best, and those that are not told apart from it."""
    behind: list[GroupRow]
    unlearned: list[GroupRow]
    """Not better than guessing, so not ranked."""

    def lead_over(self, row: GroupRow) -> Paired | None:
        """The best against another in points, paired by seed; None without a common seed."""
        return _lead(self.leaders[0], row, self.width)


def rankings(summary: Summary) -> list[Ranking]:
    """One per scene and tested width."""
    found = []
    for scene in dict.fromkeys(row.scene for row in summary.groups):
        rows = [row for row in summary.groups if row.scene == scene and not row.computed]
        widths = dict.fromkeys(width for row in rows for width in row.widths)
        found += [
            _ranking(scene, width, [row for row in rows if width in row.widths])
            for width in sorted(widths, key=lambda name: float(name[:-1]))
        ]
    return found


def conclusions_by_scene(summary: Summary) -> dict[str, list[str]]:
    """For each scene, one sentence per width, then what it cost."""
    ranked = rankings(summary)
    return {
        scene: [
            *(_sentence(each) for each in ranked if each.scene == scene),
            *_cost([row for row in summary.groups if row.scene == scene]),
            *(each.words for each in summary.budgets if each.scene == scene),
            *(each.words for each in summary.averaged if each.scene == scene),
        ]
        for scene in dict.fromkeys(row.scene for row in summary.groups)
    }


def caveats(summary: Summary) -> list[str]:
    """What readers must know before they trust the numbers."""
    notes = []
    runs = [row for row in summary.groups if not row.computed]
    for row in runs:
        if "/" in rounds(row):
            done = rounds(row).replace("/", " of ")
            notes.append(
                f"{row.name} ({row.scene}) has finished {done} rounds; its numbers are preliminary."
            )
        notes += _unsound(row)
    refused = int(sum(row.total("refused") for row in runs))
    if refused:
        updates = "1 update" if refused == 1 else f"{refused:,} updates"
        notes.append(f"The server refused {updates}; run.log in the run's folder says why.")
    if all(len(row.seeds) == 1 for row in runs):
        notes.append(
            "Every method ran under one seed, so nothing is told apart. Deviations are over the "
            f"last evaluated rounds (at most {LAST}), not over seeds."
        )
    elif any(len(row.seeds) == 1 for row in runs):
        notes.append(
            "For a method that ran under one seed, the deviation is over the last evaluated "
            f"rounds (at most {LAST}); otherwise it is over seeds."
        )
    return notes


def _unsound(row: GroupRow) -> list[str]:
    """Runs that are something else than their name says."""
    who = f"{row.name} ({row.scene})"
    parts = [
        (row.total(f"segments.{s}.asked"), row.total(f"segments.{s}.delivered"))
        for s in range(1, row.segments + 1)
    ]
    notes = [
        f"Segment {segment} of {who} never arrived: its numbers are those of a narrower model."
        for segment, (asked, arrived) in enumerate(parts, 1)
        if asked and not arrived
    ]
    for segment, ((asked, first), (_, second)) in enumerate(pairwise(parts), 1):
        if row.method == "slimfl" and 0 < first == second < asked:
            notes.append(
                f"Segments {segment} and {segment + 1} of {who} always arrived together, so they "
                "are one message at a lower rate; another power split tells them apart."
            )
    return notes


def _ranking(scene: str, width: str, rows: Sequence[GroupRow]) -> Ranking:
    best_first = sorted(rows, key=lambda row: _mean(row, width), reverse=True)
    learned = [row for row in best_first if row.has_learned(width)]
    unlearned = [row for row in best_first if not row.has_learned(width)]
    leaders = learned[:1]
    behind: list[GroupRow] = []
    for row in learned[1:]:
        lead = _lead(learned[0], row, width)
        (behind if lead is not None and lead.told_apart else leaders).append(row)
    return Ranking(scene, width, leaders, behind, unlearned)


def _lead(first: GroupRow, other: GroupRow, width: str) -> Paired | None:
    own, theirs = ((100 * row.accuracy(width)).to_dict() for row in (first, other))
    return paired(own, theirs)


def _points(lead: Paired | None) -> str:
    return "no seed in common" if lead is None else lead.in_points


def _sentence(ranking: Ranking) -> str:
    width, leaders, behind = ranking.width, ranking.leaders, ranking.behind
    where = f"At width {width} over the {ranking.scene},{_footing(ranking)}"
    if not leaders:
        names = _and([_with_percent(row, width) for row in ranking.unlearned])
        have = "has" if len(ranking.unlearned) == 1 else "have"
        limit = 100 * max(row.learned_above for row in ranking.unlearned)
        return (
            f"{where} {names} {have} not learned yet: the accuracy is not above {limit:.1f} %, "
            f"which is guessing plus {ERRORS:.0f} standard errors."
        )
    first = leaders[0]
    if len(leaders) == 1 and not behind:
        alone = "is the only method at this width"
        if ranking.unlearned:
            alone = "is the only one that has learned"
        said = f"{_with_percent(first, width)} {alone}"
    elif len(leaders) == 1:
        said = f"{_with_percent(first, width)} leads; over {_with_percent(behind[0], width)}: "
        said += _points(ranking.lead_over(behind[0]))
    elif all(len(row.seeds) == 1 for row in leaders):
        names = _and([_with_percent(row, width) for row in leaders])
        said = f"{names}: one seed tells nothing apart"
    else:
        names = _and([_with_percent(row, width) for row in leaders])
        gaps = [f"{row.name} {_points(ranking.lead_over(row))}" for row in leaders[1:]]
        said = f"{names} are not told apart (the first over {'; over '.join(gaps)})"
        if behind:
            gap = _points(ranking.lead_over(behind[0]))
            said += f"; {_with_percent(behind[0], width)} is behind the first: {gap}"
    if ranking.unlearned:
        names = _and([_with_percent(row, width) for row in ranking.unlearned])
        said += f"; {names} {'has' if len(ranking.unlearned) == 1 else 'have'} not learned yet"
    return f"{where} {said}."


def _footing(ranking: Ranking) -> str:
    """What the methods of a ranking agree in; empty for one method."""
    rows = [*ranking.leaders, *ranking.behind, *ranking.unlearned]
    if len(rows) < 2:
        return ""
    equal, unequal = footing(rows)
    but_not = f", but not {_and(unequal)}," if equal and unequal else ","
    return f" at equal {_and(equal)}{but_not}" if equal else f" at unequal {_and(unequal)},"


def _mean(row: GroupRow, width: str) -> float:
    return row.accuracy_mean(width) or 0.0


def _cost(rows: Sequence[GroupRow]) -> list[str]:
    """One SlimFL run compared with one Vanilla FL run per width."""
    per_width = {_settings(row): row for row in rows if row.computed}
    return [
        sentence
        for slim in rows
        if slim.method == "slimfl" and _settings(slim) in per_width
        for sentence in _cost_of(slim, per_width[_settings(slim)])
    ]


def _settings(row: GroupRow) -> str:
    """What a name says besides the method, which is equal for groups with the same settings."""
    return row.name.removeprefix(title(row.method))


def _cost_of(slim: GroupRow, every: GroupRow) -> list[str]:
    widths = _and(slim.widths)
    own, theirs = _joules(slim, "total"), _joules(every, "total")
    sentences = [
        f"Over the {slim.scene}, serving widths {widths} costs {number(own)} J of "
        f"transmit energy with one run of {slim.name} and {number(theirs)} J with one run "
        f"of Vanilla FL per width ({_times(theirs, own)})."
    ]
    own, theirs = _joules(slim, "until_converged"), _joules(every, "until_converged")
    if own and theirs:
        sentences.append(
            f"Until convergence, the costs are {number(own)} J and {number(theirs)} J "
            f"({_times(theirs, own)})."
        )
    return sentences


def _with_percent(row: GroupRow, width: str) -> str:
    return f"{row.name} ({percent(_mean(row, width))} %)"


def _joules(row: GroupRow, part: str) -> float | None:
    return row.mean(f"{part}.energy_j")


def _times(one: float | None, other: float | None) -> str:
    return f"{one / other:.2f} times as much" if one is not None and other else "no comparison"


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def overview(summary: Summary) -> RunTable:
    """One row per setting: who leads at each width, and what SlimFL saves on the air."""
    ranked = {(each.scene, each.width): each for each in rankings(summary)}
    scenes = list(dict.fromkeys(row.scene for row in summary.groups))

    def leader(scene: str, width: str) -> str:
        return _leader(ranked.get((scene, width)))

    def ratio(scene: str) -> str:
        return _energy_ratio([row for row in summary.groups if row.scene == scene])

    columns = [
        *(
            Column(f"{width}: most accurate", f"best.{width}", partial(leader, width=width))
            for width in width_names(summary.groups)
        ),
        Column("energy without SlimFL", "energy_ratio", ratio),
    ]
    return RunTable("overview", "All settings", str, columns, scenes, heading="setting")


def _leader(ranking: Ranking | None) -> str:
    if ranking is None:
        return NONE
    if not ranking.leaders:
        return "none has learned yet"
    width = ranking.width
    told = [f"{row.name} {percent(_mean(row, width))} %" for row in ranking.leaders]
    if len(told) > 1:
        return "not told apart: " + ", ".join(told)
    if not ranking.behind:
        return told[0]
    lead = _mean(ranking.leaders[0], width) - _mean(ranking.behind[0], width)
    return f"{told[0]} (+{100 * lead:.1f})"


def _energy_ratio(rows: Sequence[GroupRow]) -> str:
    slim = next((row for row in rows if row.method == "slimfl"), None)
    every = next((row for row in rows if row.computed), None)
    if slim is None or every is None or not _joules(slim, "total"):
        return NONE
    return _times(_joules(every, "total"), _joules(slim, "total")).removesuffix(" as much")
