"""What the Vanilla FL runs of all widths had reached when they had together spent SlimFL's budget.

This is the paper's own comparison: one run of SlimFL gives every width, and takes the place of one
Vanilla FL run per width, all of which send in every round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import pandas as pd

from slimfl.results.groups import Group
from slimfl.results.records import RunRecord
from slimfl.results.rules import LAST, accuracy_over
from slimfl.results.statistics import Paired, paired


@dataclass(frozen=True)
class AtBudget:
    """SlimFL over its seeds, and the Vanilla FL runs that it replaces, at equal transmit energy."""

    slim: str
    vanilla: str
    scene: str
    energy_j: float
    rounds: float
    """Mean number of rounds after which the Vanilla FL runs had spent SlimFL's transmit energy."""
    of_rounds: int
    reached: dict[str, float]
    """What they had reached by then, by the name of the width; fractions of 1."""
    lead: dict[str, Paired]
    """SlimFL's final accuracy over that, in points."""

    @property
    def words(self) -> str:
        """The comparison as a sentence."""
        widths = "; ".join(
            f"{width}: {100 * self.reached[width]:.1f} %, {self.slim} {lead.in_points}"
            for width, lead in self.lead.items()
        )
        return (
            f"At {self.slim}'s transmit energy of {self.energy_j:.3g} J, {self.vanilla} has done "
            f"{self.rounds:.0f} of {self.of_rounds} rounds and reached {widths}."
        )


def compare_at_budget(
    slim: Group, vanilla: Sequence[Group], name: str, scene: str
) -> AtBudget | None:
    """The comparison over the seeds that all of them have; None if there is none.

    Args:
        slim: The runs of SlimFL.
        vanilla: Those of Vanilla FL, one group per width.
        name: What the groups of Vanilla FL are called together.
        scene: The conditions that all share.
    """
    stopped = {}
    for run in slim.runs:
        seed = run.experiment.seed
        same = [other for each in vanilla for other in each.runs if other.experiment.seed == seed]
        found = _stopped(run, same) if len(same) == len(vanilla) else None
        if found is not None:
            stopped[seed] = found
    if not stopped:
        return None
    rounds = fmean(affordable for affordable, _, _ in stopped.values())
    runs = {run.experiment.seed: run for run in slim.runs if run.experiment.seed in stopped}
    final = {seed: accuracy_over(run, len(run.lines)) for seed, run in runs.items()}
    _, of_rounds, widths = next(iter(stopped.values()))
    lead, reached = {}, {}
    for width in widths:
        ours = {s: 100 * a[width]["final"] for s, a in final.items() if width in a}
        theirs = {s: 100 * accuracy[width] for s, (_, _, accuracy) in stopped.items()}
        difference = paired(ours, theirs)
        if difference is not None:
            lead[width], reached[width] = difference, fmean(theirs.values()) / 100
    energy_j = fmean(run.rounds["sending_j"].sum() for run in runs.values())
    return AtBudget(slim.name, name, scene, energy_j, rounds, of_rounds, reached, lead)


def _stopped(
    slim: RunRecord, vanilla: Sequence[RunRecord]
) -> tuple[int, int, dict[str, float]] | None:
    """The Vanilla FL runs of one seed, stopped in the last round that SlimFL's energy pays in full.

    That round, the number of all rounds, and the accuracy by width: the mean over the last tests
    until then, the same share of the tests as SlimFL's final accuracy is the mean of, as accuracy
    rises. None if nothing was tested by then.
    """
    budget = slim.rounds["sending_j"].sum() * (1 + 1e-9)
    spent = [run.rounds["sending_j"] for run in vanilla]
    together = pd.concat(spent, axis=1, join="inner").sum(axis=1)
    affordable = int((together.cumsum() <= budget).sum())
    window = LAST / max(LAST, len(slim.evaluated))
    accuracy = {
        width: reached["final"]
        for run in vanilla
        for width, reached in accuracy_over(run, affordable, window).items()
    }
    return (affordable, len(together), accuracy) if affordable and accuracy else None
