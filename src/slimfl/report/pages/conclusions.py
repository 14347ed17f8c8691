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

    @classmethod
    def of(cls, scene: str, width: str, rows: Sequence[GroupRow]) -> "Ranking":
        """Rank the methods that were tested at this width."""
        tested = [row for row in rows if width in row.widths and not row.computed]
        tested.sort(key=lambda row: _reached(row, width), reverse=True)
        ranking = cls(scene, width, [], [], [])
        for row in tested:
            if not row.has_learned(width):
                ranking.unlearned.append(row)
            elif ranking.leaders and (lead := ranking.lead_over(row)) and lead.told_apart:
                ranking.behind.append(row)
            else:
                ranking.leaders.append(row)
        return ranking

    def lead_over(self, row: GroupRow) -> Paired | None:
        """The best against another in points, paired by seed; None without a common seed."""
        best, other = ((100 * one.accuracy(self.width)).to_dict() for one in (self.leaders[0], row))
        return paired(best, other)

    @property
    def sentence(self) -> str:
        """Who leads, and by how much."""
        where = f"At width {self.width} over the {self.scene},{self._footing}"
        guessing = self._named(self.unlearned)
        have = f"{'has' if len(self.unlearned) == 1 else 'have'} not learned yet"
        if not self.leaders:
            limit = 100 * max(row.learned_above for row in self.unlearned)
            return (
                f"{where} {guessing} {have}: the accuracy is not above {limit:.1f} %, "
                f"which is guessing plus {ERRORS:.0f} standard errors."
            )
        first = self._named(self.leaders)
        if len(self.leaders) > 1 and all(len(row.seeds) == 1 for row in self.leaders):
            said = f"{first}: one seed tells nothing apart"
        elif len(self.leaders) > 1:
            gaps = "; over ".join(f"{row.name} {self._points(row)}" for row in self.leaders[1:])
            said = f"{first} are not told apart (the first over {gaps})"
            for row in self.behind[:1]:
                said += f"; {self._named([row])} is behind the first: {self._points(row)}"
        elif self.behind:
            said = f"{first} leads; over {self._named(self.behind[:1])}: "
            said += self._points(self.behind[0])
        else:
            alone = "one that has learned" if self.unlearned else "method at this width"
            said = f"{first} is the only {alone}"
        return f"{where} {said}; {guessing} {have}." if self.unlearned else f"{where} {said}."

    @property
    def leader(self) -> str:
        """The same in a cell of a table."""
        if not self.leaders:
            return "none has learned yet"
        told = [f"{row.name} {percent(_reached(row, self.width))} %" for row in self.leaders]
        if len(told) > 1:
            return "not told apart: " + ", ".join(told)
        if not self.behind:
            return told[0]
        lead = _reached(self.leaders[0], self.width) - _reached(self.behind[0], self.width)
        return f"{told[0]} (+{100 * lead:.1f})"

    @property
    def _footing(self) -> str:
        """What the methods agree in; empty for one method."""
        rows = [*self.leaders, *self.behind, *self.unlearned]
        if len(rows) < 2:
            return ""
        equal, unequal = footing(rows)
        but_not = f", but not {_and(unequal)}," if equal and unequal else ","
        return f" at equal {_and(equal)}{but_not}" if equal else f" at unequal {_and(unequal)},"

    def _named(self, rows: Sequence[GroupRow]) -> str:
        return _and([f"{row.name} ({percent(_reached(row, self.width))} %)" for row in rows])

    def _points(self, row: GroupRow) -> str:
        lead = self.lead_over(row)
        return "no seed in common" if lead is None else lead.in_points


def conclusions_by_scene(summary: Summary) -> dict[str, list[str]]:
    """For each scene, one sentence per width, then what it cost."""
    found = {}
    for scene, rows in _by_scene(summary).items():
        widths = width_names(row for row in rows if not row.computed)
        found[scene] = [Ranking.of(scene, width, rows).sentence for width in widths]
        found[scene] += _cost(rows)
        found[scene] += [each.words for each in summary.budgets if each.scene == scene]
        found[scene] += [each.words for each in summary.averaged if each.scene == scene]
    return found


def overview(summary: Summary) -> RunTable:
    """One row per setting: who leads at each width, and what SlimFL saves on the air."""
    scenes = _by_scene(summary)

    def leader(scene: str, width: str) -> str:
        tested = any(width in row.widths for row in scenes[scene] if not row.computed)
        return Ranking.of(scene, width, scenes[scene]).leader if tested else NONE

    def ratio(scene: str) -> str:
        slim = next((row for row in scenes[scene] if row.method == "slimfl"), None)
        every = next((row for row in scenes[scene] if row.computed), None)
        times = _times(slim, every, "total") if slim and every else ""
        return times.removesuffix(" as much") or NONE

    columns = [
        *(
            Column(f"{width}: most accurate", f"best.{width}", partial(leader, width=width))
            for width in width_names(summary.groups)
        ),
        Column("energy without SlimFL", "energy_ratio", ratio),
    ]
    return RunTable("overview", "All settings", str, columns, list(scenes), heading="setting")


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


def _by_scene(summary: Summary) -> dict[str, list[GroupRow]]:
    found: dict[str, list[GroupRow]] = {}
    for row in summary.groups:
        found.setdefault(row.scene, []).append(row)
    return found


def _reached(row: GroupRow, width: str) -> float:
    return row.accuracy_mean(width) or 0.0


def _and(names: list[str]) -> str:
    return "".join(names) if len(names) < 2 else f"{', '.join(names[:-1])} and {names[-1]}"


def _cost(rows: Sequence[GroupRow]) -> list[str]:
    """One SlimFL run compared with one Vanilla FL run per width, both with the same settings."""

    def settings(row: GroupRow) -> str:
        """What a name says besides the method."""
        return row.name.removeprefix(title(row.method))

    sentences = []
    per_width = {settings(row): row for row in rows if row.computed}
    for slim in (row for row in rows if row.method == "slimfl" and settings(row) in per_width):
        every, key = per_width[settings(slim)], "total.energy_j"
        sentences.append(
            f"Over the {slim.scene}, serving widths {_and(slim.widths)} costs "
            f"{number(slim.mean(key))} J of transmit energy with one run of {slim.name} and "
            f"{number(every.mean(key))} J with one run of Vanilla FL per width "
            f"({_times(slim, every, 'total') or 'no comparison'})."
        )
        key, times = "until_converged.energy_j", _times(slim, every, "until_converged")
        if times:
            sentences.append(
                f"Until convergence, the costs are {number(slim.mean(key))} J and "
                f"{number(every.mean(key))} J ({times})."
            )
    return sentences


def _times(slim: GroupRow, every: GroupRow, part: str) -> str:
    """How much more energy the one takes than the other; empty if that is unknown."""
    own, theirs = (row.mean(f"{part}.energy_j") for row in (slim, every))
    return f"{theirs / own:.2f} times as much" if own and theirs is not None else ""
