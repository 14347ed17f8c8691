"""The convergence test of section VI-D in its usable reading (erratum E10).

A width has converged when, over the rounds of a window, its mean accuracy is above one threshold
and the standard deviation below another. A run has converged in the first round in which that holds
for all its widths in the same window.
"""

from collections.abc import Iterable, Sequence
from statistics import fmean, pstdev

from slimfl.experiment import FederationSection
from slimfl.runs.storage.record import RoundRecord


def converged_round(rounds: Iterable[tuple[int, float]], section: FederationSection) -> int | None:
    """The first round whose window passes, given (round, accuracy) of one width in order."""
    return _first_passing(((round, (accuracy,)) for round, accuracy in rounds), section)


def convergence(records: Sequence[RoundRecord], section: FederationSection) -> int | None:
    """The first round whose window passes at every evaluated width, None if there is none."""
    evaluated = [line for line in records if line.accuracy]
    if not evaluated:
        return None
    widths = list(evaluated[0].accuracy)
    rounds = ((line.round, [line.accuracy[width] for width in widths]) for line in evaluated)
    return _first_passing(rounds, section)


def _first_passing(
    rounds: Iterable[tuple[int, Sequence[float]]], section: FederationSection
) -> int | None:
    """The first round whose window passes at all widths, given the accuracy of each."""
    window: list[tuple[int, Sequence[float]]] = []
    for round, accuracies in rounds:
        window.append((round, accuracies))
        while window[0][0] <= round - section.convergence_window:
            window.pop(0)
        if round < section.convergence_window or len(window) < 2:
            continue
        curves = list(zip(*(values for _, values in window), strict=True))
        if all(fmean(curve) > section.convergence_accuracy for curve in curves) and all(
            pstdev(curve) < section.convergence_deviation for curve in curves
        ):
            return round
    return None
