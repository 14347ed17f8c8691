"""The convergence test of section VI-D in its usable reading (erratum E10).

A width has converged when, over the rounds of a window, its mean accuracy is above one threshold
and the standard deviation below another.
"""

from collections.abc import Iterable
from statistics import fmean, pstdev
from typing import Any

from slimfl.config import FederationSection


def converged_round(rounds: Iterable[tuple[int, float]], section: FederationSection) -> int | None:
    """The first round whose window passes, given (round, accuracy) in order."""
    window: list[tuple[int, float]] = []
    for round, accuracy in rounds:
        window.append((round, accuracy))
        while window[0][0] <= round - section.convergence_window:
            window.pop(0)
        values = [value for _, value in window]
        if (
            round >= section.convergence_window
            and len(values) > 1
            and fmean(values) > section.convergence_accuracy
            and pstdev(values) < section.convergence_deviation
        ):
            return round
    return None


def convergence(metrics: list[dict[str, Any]], section: FederationSection) -> int | None:
    """The round by which every evaluated width has converged, None if one has not."""
    evaluated = [line for line in metrics if line["accuracy"]]
    if not evaluated:
        return None
    reached = [
        converged_round(((line["round"], line["accuracy"][width]) for line in evaluated), section)
        for width in evaluated[0]["accuracy"]
    ]
    known = [round for round in reached if round is not None]
    return max(known) if len(known) == len(reached) else None
