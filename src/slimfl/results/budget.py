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
class Stopped:
    """The Vanilla FL runs of one seed, stopped in the last round that the budget pays in full."""

    rounds: int
    of_rounds: int
    accuracy: dict[str, float]
    """By the name of the width, a fraction of 1; the mean over the last tests until then, the same
    share of the tests as SlimFL's final accuracy is the mean of."""


def at_budget_of(slim: RunRecord, vanilla: Sequence[RunRecord]) -> Stopped | None:
    """Stop one Vanilla FL run per width, all with the same seed, at SlimFL's transmit energy.

    None if nothing was tested by then.
    """
    window = LAST / max(LAST, len(slim.evaluated))
    budget = slim.rounds["sending_j"].sum() * (1 + 1e-9)
    spent = [run.rounds["sending_j"] for run in vanilla]
    together = pd.concat(spent, axis=1, join="inner").sum(axis=1)
    affordable = int((together.cumsum() <= budget).sum())
    # accuracy rises: a window as long as SlimFL's would reach further back in a shorter run
    accuracy = {
        width: reached["final"]
        for run in vanilla
        for width, reached in accuracy_over(run, affordable, window).items()
    }
    if not affordable or not accuracy:
        return None
    return Stopped(affordable, len(together), accuracy)


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
    """The comparison over the seeds that all of them have; None if there is none."""
    one_of = [{run.experiment.seed: run for run in group.runs} for group in vanilla]
    stopped: dict[int, Stopped] = {}
    own: dict[int, RunRecord] = {}
    for run in slim.runs:
        seed = run.experiment.seed
        if all(seed in runs for runs in one_of):
            found = at_budget_of(run, [runs[seed] for runs in one_of])
            if found is not None:
                stopped[seed], own[seed] = found, run
    if not stopped:
        return None
    final = {seed: accuracy_over(run, len(run.lines)) for seed, run in own.items()}
    lead, reached = {}, {}
    for width in next(iter(stopped.values())).accuracy:
        ours = {s: 100 * a[width]["final"] for s, a in final.items() if width in a}
        theirs = {s: 100 * each.accuracy[width] for s, each in stopped.items()}
        difference = paired(ours, theirs)
        if difference is not None:
            lead[width] = difference
            reached[width] = fmean(theirs.values()) / 100
    return AtBudget(
        slim=slim.name,
        vanilla=name,
        scene=scene,
        energy_j=fmean(run.rounds["sending_j"].sum() for run in own.values()),
        rounds=fmean(each.rounds for each in stopped.values()),
        of_rounds=next(iter(stopped.values())).of_rounds,
        reached=reached,
        lead=lead,
    )
