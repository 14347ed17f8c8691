"""Why a claim does not come out as in the paper, if that is known."""

from __future__ import annotations

import math
import re

from lab.reproduction.cells.scale import PAPER_ROUNDS, Scale
from lab.reproduction.judging.verdict import Claim, Verdict


def reason(claim: Claim, scale: Scale) -> str:
    """A sentence for a claim that does not agree or has no verdict; empty for others."""
    guessing = [each.quantity for each in claim.comparisons if not each.learned]
    if claim.verdict is Verdict.UNDECIDED and guessing:
        return f"Not better than guessing yet: {', '.join(guessing)}."
    if claim.verdict is Verdict.UNDECIDED and claim.doubt:
        return claim.doubt
    if claim.verdict not in (Verdict.ORDER, Verdict.DIFFERS):
        return ""
    if claim.seeds is None:
        erratum = re.search(r"erratum (E\d+)", claim.source)
        where = f"erratum {erratum[1]} on the fidelity page" if erratum else "the notes"
        return f"Computed without runs, so the length is not the reason: see {where}."
    if scale.quick_look:
        return "These runs are a quick look: their length may be the reason."
    if claim.explanation:
        return claim.explanation
    if max(scale.rounds.values()) >= PAPER_ROUNDS:
        return "Nothing is shortened; the reason is unknown."
    return _at_standard(claim)


def _at_standard(claim: Claim) -> str:
    """Accuracy rises with the rounds, so too few rounds cannot explain one above the paper's."""
    late = [each.quantity for each in claim.comparisons if each.ours == math.inf]
    if late:
        return (
            f"Not every seed of {' and '.join(late)} converged in these rounds: more rounds may "
            "change this."
        )
    signs = {
        each.ours > each.paper
        for each in claim.comparisons
        if each.paper is not None and each.ours is not None and not each.agrees
    }
    if not signs or any(each.unit != "%" for each in claim.comparisons):
        return "Whether more rounds would change this is unknown."
    if signs == {True}:
        return (
            "The length is not the reason, because what differs is already above the paper's after "
            "fewer rounds. The reason is unknown."
        )
    return "Some accuracies are below the paper's: fewer rounds may be the reason."
