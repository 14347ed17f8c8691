"""The best split for any decoding probabilities, found numerically.

Every split that can be decoded comes from positive margins (`power.split_of_margins`), so the
search runs over their logarithms and never meets an infeasible split. For Rayleigh fading and the
bound, `power.optimal_split_numeric` is exact; this search agrees with it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from slimfl.errors import RequestError
from slimfl.radio.objectives import Objective
from slimfl.radio.power import optimal_split, split_of_margins
from slimfl.radio.superposition import Floats, sinr_target

Split = tuple[float, ...]

#: Limit of the logarithm of the ratio of two margins, small enough not to suffer from rounding.
WIDEST = 18.0


def best_split(
    probabilities: Callable[[Split], Floats],
    spectral_efficiencies: Sequence[float],
    objective: Objective | str = "bound",
    *,
    residual: float = 0.0,
    orthogonal: bool = False,
) -> Split:
    """The split with the best objective; `probabilities` maps a split to decoding probabilities.

    >>> from slimfl.radio import Superposition, Rayleigh
    >>> rates = (1.5, 1.5)
    >>> def arrives(split):
    ...     return Rayleigh().survival(Superposition(rates, split).thresholds(0.05))
    >>> [round(share, 3) for share in best_split(arrives, rates)]
    [0.772, 0.228]
    """
    from scipy.optimize import minimize

    goal = Objective(objective) if isinstance(objective, str) else objective
    targets = sinr_target(spectral_efficiencies)
    count = len(targets)
    if count == 1:
        return (1.0,)

    def split(logs: Floats) -> Split:
        margins = np.exp(np.clip(logs - logs.max(), -WIDEST, 0.0))
        if orthogonal:
            return tuple((margins / margins.sum()).tolist())
        shares = split_of_margins(targets, margins, residual)
        if shares is None:
            raise RequestError(
                "no power split can be decoded; lower the rates or the residual interference"
            )
        return shares

    def cost(logs: Floats) -> float:
        found = goal.cost(arrives(logs))
        return found if np.isfinite(found) else 1e300

    def least(function: Callable[[Floats], float], starts: list[Floats]) -> Floats:
        options: Any = {"xatol": 1e-6, "fatol": 1e-12, "maxiter": 400 * count}
        ends = [
            minimize(function, start, method="Nelder-Mead", options=options) for start in starts
        ]
        return np.asarray(min(ends, key=lambda end: float(end.fun)).x)

    def arrives(logs: Floats) -> Floats:
        return probabilities(split(logs))

    # relative to the margin of segment 1, so that every point is a different split
    others = [start[1:] - start[0] for start in _starts(targets, residual, orthogonal)]
    best = np.insert(least(lambda logs: cost(np.insert(logs, 0, 0.0)), others), 0, 0.0)
    if goal.first_outage is not None and _outage(arrives(best)) > goal.first_outage:
        best = _on_the_limit(goal.first_outage, arrives, cost, others, least)
    return split(best)


def _on_the_limit(
    first_outage: float,
    arrives: Callable[[Floats], Floats],
    cost: Callable[[Floats], float],
    others: list[Floats],
    least: Callable[[Callable[[Floats], float], list[Floats]], Floats],
) -> Floats:
    """Margins that give segment 1 exactly its maximum outage and are otherwise optimal."""
    from scipy.optimize import brentq

    def with_first(logs: Floats) -> Floats:
        """Add the margin of segment 1 at which its outage is at the limit."""

        def excess(first: float) -> float:
            return _outage(arrives(np.insert(logs, 0, first))) - first_outage

        if excess(WIDEST) > 0:
            smallest = _outage(arrives(np.insert(logs, 0, WIDEST)))
            raise RequestError(
                f"segment 1 has an outage of at least {smallest:.3g} with any split; "
                f"{first_outage:g} needs more power or a lower rate"
            )
        low = -WIDEST
        first = low if excess(low) <= 0 else brentq(excess, low, WIDEST, xtol=1e-12)
        return np.insert(logs, 0, first)

    if len(others[0]) == 1:
        return with_first(np.zeros(1))
    # relative to one of the others, so that every point of the search is a different split
    free = [start[:-1] - start[-1] for start in others]
    found = least(lambda logs: cost(with_first(np.append(logs, 0.0))), free)
    return with_first(np.append(found, 0.0))


def _outage(probabilities: Floats) -> float:
    return 1 - float(probabilities[0])


def _starts(targets: Floats, residual: float, orthogonal: bool) -> Iterator[Floats]:
    """Logarithms of margins: equal thresholds, the closed form for Rayleigh, and steeper ones.

    The steepest gives nearly all power to segment 1. Where that is best, the others end elsewhere.
    """
    count = len(targets)
    yield np.zeros(count)
    if not orthogonal and not residual:
        shares = np.array(optimal_split(np.log2(1 + targets).tolist()))
        after = shares[::-1].cumsum()[::-1] - shares
        yield np.asarray(np.log(shares / targets - after))
    for steepness in (1.0, 8.0):
        yield -steepness * np.arange(count, dtype=np.float64)
