"""The result in sentences, computed from the summary: who leads, by how much, at what cost.

Methods are compared in pairs by seed (`results/statistics.py`), and every difference is shown with
its 95% interval. One seed tells nothing apart; fewer than five are called preliminary. A network
that is not better than guessing (`results/learned.py`) has not learned yet and is not ranked.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from slimfl.report.tables import number_format as cells
from slimfl.results.groups import title
from slimfl.results.learned import ERRORS
from slimfl.results.run_summary import LAST
from slimfl.results.seed_summary import GroupSummary, Spread
from slimfl.results.statistics import Paired, paired
from slimfl.results.summary import Summary


@dataclass(frozen=True)
class Ranking:
    """The methods of one scene at one width, each list from best to worst."""

    scene: str
    width: str
    leaders: list[GroupSummary]
    """The best, and those that are not told apart from it."""
    behind: list[GroupSummary]
    unlearned: list[GroupSummary]
    """Not better than guessing, so not ranked."""

    def lead_over(self, row: GroupSummary) -> Paired | None:
        """The best against another in points, paired by seed; None without a common seed."""
        return _lead(self.leaders[0], row, self.width)


def rankings(summary: Summary) -> list[Ranking]:
    """One per scene and tested width."""
    found = []
    for scene in dict.fromkeys(row.scene for row in summary.groups):
        rows = [row for row in summary.groups if row.scene == scene and not row.computed]
        widths = dict.fromkeys(width for row in rows for width in row.accuracy)
        found += [
            _ranking(scene, width, [row for row in rows if width in row.accuracy])
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
        if not row.complete:
            done = f"{row.rounds_done} of {row.rounds_asked} rounds"
            notes.append(
                f"{row.name} ({row.scene}) has finished {done}; its numbers are preliminary."
            )
        notes += _unsound(row)
    refused = sum(row.refused for row in runs)
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


def _unsound(row: GroupSummary) -> list[str]:
    """Runs that are something else than their name says."""
    who = f"{row.name} ({row.scene})"
    notes = [
        f"Segment {segment} of {who} never arrived: its numbers are those of a narrower model."
        for segment, (asked, delivered) in enumerate(zip(row.asked, row.delivered, strict=True), 1)
        if asked and not delivered
    ]
    pairs = zip(row.asked, row.delivered, row.delivered[1:], strict=False)
    for segment, (asked, first, second) in enumerate(pairs, 1):
        if row.method == "slimfl" and 0 < first == second < asked:
            notes.append(
                f"Segments {segment} and {segment + 1} of {who} always arrived together, so they "
                "are one message at a lower rate; another power split tells them apart."
            )
    return notes


def _ranking(scene: str, width: str, rows: Sequence[GroupSummary]) -> Ranking:
    best_first = sorted(rows, key=lambda row: _mean(row, width), reverse=True)
    learned = [row for row in best_first if row.has_learned(width)]
    unlearned = [row for row in best_first if not row.has_learned(width)]
    leaders = learned[:1]
    behind: list[GroupSummary] = []
    for row in learned[1:]:
        lead = _lead(learned[0], row, width)
        (behind if lead is not None and lead.told_apart else leaders).append(row)
    return Ranking(scene, width, leaders, behind, unlearned)


def _lead(first: GroupSummary, other: GroupSummary, width: str) -> Paired | None:
    own, theirs = (
        {seed: 100 * value for seed, value in row.accuracy[width].by_seed.items()}
        for row in (first, other)
    )
    return paired(own, theirs)


def _points(lead: Paired | None) -> str:
    return "no seed in common" if lead is None else lead.in_points


def _sentence(ranking: Ranking) -> str:
    width, leaders, behind = ranking.width, ranking.leaders, ranking.behind
    where = f"At width {width} over the {ranking.scene},"
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


def _mean(row: GroupSummary, width: str) -> float:
    return row.accuracy[width].final.mean


def _cost(rows: Sequence[GroupSummary]) -> list[str]:
    """One SlimFL run compared with one Vanilla FL run per width."""
    per_width = {_settings(row): row for row in rows if row.computed}
    return [
        sentence
        for slim in rows
        if slim.method == "slimfl" and _settings(slim) in per_width
        for sentence in _cost_of(slim, per_width[_settings(slim)])
    ]


def _settings(row: GroupSummary) -> str:
    """What a name says besides the method, which is equal for groups with the same settings."""
    return row.name.removeprefix(title(row.method))


def _cost_of(slim: GroupSummary, every: GroupSummary) -> list[str]:
    widths = _and(list(slim.accuracy))
    sentences = [
        f"Over the {slim.scene}, serving widths {widths} costs {_energy(slim.energy_j)} of "
        f"transmit energy with one run of {slim.name} and {_energy(every.energy_j)} with one run "
        f"of Vanilla FL per width ({_times(every.energy_j, slim.energy_j)})."
    ]
    if slim.energy_until_j and every.energy_until_j:
        own, theirs = slim.energy_until_j, every.energy_until_j
        sentences.append(
            f"Until convergence, the costs are {_energy(own)} and {_energy(theirs)} "
            f"({_times(theirs, own)})."
        )
    return sentences


def _with_percent(row: GroupSummary, width: str) -> str:
    return f"{row.name} ({100 * row.accuracy[width].final.mean:.1f} %)"


def _energy(joule: Spread) -> str:
    return f"{cells.number(joule)} J"


def _times(one: Spread, other: Spread) -> str:
    return f"{one.mean / other.mean:.2f} times as much" if other.mean else "no comparison"


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
