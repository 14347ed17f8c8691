"""A power split per device, from its mean gain; `docs/theory.md` derives it.

With r = c / P and k_i = u'_i prod_{j<i} (1 + u'_j), let b_i = r k_i / t_i be the share of message i
in the power budget: sum_i b_i = 1. Under Rayleigh fading message i arrives with probability exp(-r
k_i / b_i), and a device maximises

    sum_i w_i p_i = sum_i w_i exp(-r k_i / b_i)

Every term is an S-shaped function of b_i: convex for t_i > 2, then concave. So the best choice of a
distant device is to leave out the last messages and send the first ones with all the power.

If both of two messages are sent, t_1^2 exp(-t_1) w_1 / k_1 = t_2^2 exp(-t_2) w_2 / k_2. That has no
solution in elementary functions for a given r, but one in closed form for a given t_1: t_2 = -2
W(-sqrt(q) / 2) with q = t_1^2 exp(-t_1) (k_2 / w_2) (w_1 / k_1), and r follows from the budget.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimfl.radio.superposition import Floats, Superposition, sinr_target

#: Devices whose mean gains differ by less than this share a split: the optimum is flat.
STEP_DB = 0.1

#: Messages with a smaller share of the budget are not sent.
LEAST_BUDGET = 1e-4

#: Points at which a derivative is evaluated to bracket its roots.
_SCAN = np.concatenate([np.geomspace(LEAST_BUDGET, 0.05, 60), np.linspace(0.051, 1, 240)])

#: Number of iterations for the weights that the bound implies.
_ITERATIONS = 60


def weighted_split(
    spectral_efficiencies: Sequence[float], noise_to_power: float, weights: Sequence[float]
) -> tuple[float, ...]:
    """Shares of the messages that are worth sending, which maximise sum_i w_i p_i.

    >>> [round(share, 3) for share in weighted_split([1.5, 1.5], 0.05, [1, 1])]
    [0.787, 0.213]
    >>> weighted_split([1.5, 1.5], 1.5, [1, 1])
    (1.0,)
    """
    targets = sinr_target(spectral_efficiencies)
    burdens = _burdens(targets) * noise_to_power
    wanted = np.asarray(weights, np.float64)
    if len(burdens) == 1:
        return (1.0,)
    two = len(burdens) == 2
    budget = _best_of_two(burdens, wanted) if two else _best_of_many(burdens, wanted)
    return _shares(targets, budget)


def first_outage_split(
    spectral_efficiencies: Sequence[float], noise_to_power: float, outage: float
) -> tuple[float, ...]:
    """Lose message 1 with this probability, if the power suffices; the rest is for the others."""
    targets = sinr_target(spectral_efficiencies)
    burdens = _burdens(targets) * noise_to_power
    if len(burdens) == 1:
        return (1.0,)
    first = float(burdens[0] / -np.log1p(-outage))
    if first >= 1 - LEAST_BUDGET:
        return (1.0,)
    # no less than at equal thresholds: the other messages wait for message 1, so its threshold
    # should not exceed theirs
    first = max(first, float(burdens[0] / burdens.sum()))
    rest = burdens[1:] / (1 - first)
    if len(rest) == 1:
        others = np.ones(1)
    else:
        pick = _best_of_two if len(rest) == 2 else _best_of_many
        others = pick(rest, np.ones(len(rest)))
    return _shares(targets, np.concatenate([[first], (1 - first) * others]))


def _shares(targets: Floats, budget: Floats) -> tuple[float, ...]:
    """Power shares from shares of the budget; messages from the first zero on are not sent."""
    sent = int(np.argmin(budget > 0)) if (budget <= 0).any() else len(budget)
    if sent <= 1:
        return (1.0,)
    # a message's power after interference is its share of the budget over prod (1 + u'_j)
    margins = budget[:sent] * targets[:sent] / _burdens(targets[:sent])
    shares, after = np.empty(sent), 0.0
    for i in reversed(range(sent)):
        shares[i] = margins[i] + targets[i] * after
        after += shares[i]
    return tuple((shares / after).tolist())


def _burdens(targets: Floats) -> Floats:
    """The k_i."""
    return np.asarray(targets * np.concatenate([[1.0], np.cumprod(1 + targets)[:-1]]))


def _value(burdens: Floats, weights: Floats, budget: Floats) -> float:
    """sum_i w_i p_i, with the running maximum of equation (5)."""
    with np.errstate(divide="ignore", over="ignore"):
        thresholds = np.maximum.accumulate(burdens / np.maximum(budget, 0))
    return float(weights @ np.exp(-thresholds))


def _best_of_two(burdens: Floats, weights: Floats) -> Floats:
    """Exact: compares the ends of the range and every root of the derivative in between."""
    from scipy.optimize import brentq

    most = float(burdens[1] / burdens.sum())  # both thresholds are equal there

    def slope(second: Any) -> Any:
        # compare logarithms, which do not underflow
        shares = (1 - second, second)
        first, last = (
            np.log(w * a) - 2 * np.log(b) - a / b
            for w, a, b in zip(weights, burdens, shares, strict=True)
        )
        return last - first

    points = _SCAN * most
    signs = np.sign(slope(points))
    peaks = np.flatnonzero((signs[:-1] > 0) & (signs[1:] <= 0))
    roots = [float(brentq(slope, points[i], points[i + 1], xtol=1e-14)) for i in peaks]
    budgets = [np.array([1 - second, second]) for second in (0.0, most, *roots)]
    return max(budgets, key=lambda budget: _value(burdens, weights, budget))


def _best_of_many(burdens: Floats, weights: Floats) -> Floats:
    """Numerically, starting from the first-order closed form for every number of messages sent."""
    from scipy.optimize import minimize

    best: Floats = np.eye(len(burdens))[0]
    highest = float(weights[0] * np.exp(-burdens[0]))
    for sent in range(2, len(burdens) + 1):
        # to first order, sum_i w_i t_i is smallest for t_i proportional to sqrt(k_i / w_i)
        start = np.sqrt(burdens[:sent] * weights[:sent])

        def loss(logits: Floats, sent: int = sent) -> float:
            budget = np.exp(logits - logits.max())
            return -_value(burdens[:sent], weights[:sent], budget / budget.sum())

        found = minimize(loss, np.log(start), method="Nelder-Mead",
                         options={"xatol": 1e-9, "fatol": 1e-14, "maxiter": 4000})  # fmt: skip
        if -found.fun > highest * (1 + 1e-12):
            budget = np.exp(found.x - found.x.max())
            highest, best = -found.fun, np.zeros(len(burdens))
            best[:sent] = budget / budget.sum()
    return best


@dataclass(frozen=True)
class Crowd:
    """Devices with the same mean gain and the same number of messages."""

    noise_to_power: float
    messages: int
    weight: float
    """Number of devices that can be reached."""


def bound_weights(
    spectral_efficiencies: Sequence[float], crowds: Sequence[Crowd]
) -> tuple[float, ...]:
    """The w_i for which devices that each maximise sum_i w_i p_i minimise the bound's D.

    Segment i is a mean over sum_k p_ki devices, so D = sum_i 1 / pbar_i with pbar_i the mean over
    all devices, and dD / dp_ki is proportional to -1 / pbar_i^2 for every device: w_i = pbar_i^-2.
    Splits depend on the weights and the weights on the splits; the iteration keeps the best D.
    """
    rates = tuple(spectral_efficiencies)
    reach = [crowd for crowd in crowds if crowd.messages == len(rates)]
    if not reach or len(rates) == 1:
        return (1.0,) * len(rates)
    weights, best = np.ones(len(rates)), np.ones(len(rates))
    lowest = np.inf
    for _ in range(_ITERATIONS):
        mean = _mean_probabilities(rates, crowds, weights)
        with np.errstate(divide="ignore"):
            term = float((1 / mean).sum())
        if term < lowest * (1 - 1e-9):
            lowest, best = term, weights
        # limit the weight of a segment that no device sends any more
        implied = 1 / np.maximum(mean, 1e-6) ** 2
        implied /= implied[0]
        if np.allclose(implied, weights, rtol=1e-4):
            break
        weights = np.sqrt(implied * weights)
    return tuple((best / best[0]).tolist())


def _mean_probabilities(
    rates: tuple[float, ...], crowds: Sequence[Crowd], weights: Floats
) -> Floats:
    total = np.zeros(len(rates))
    for crowd in crowds:
        sent = rates[: crowd.messages]
        shares = weighted_split(sent, crowd.noise_to_power, weights[: crowd.messages].tolist())
        probabilities = decoding(sent, shares, crowd.noise_to_power)
        total[: len(shares)] += crowd.weight * probabilities
    return total / sum(crowd.weight for crowd in crowds)


def decoding(
    rates: Sequence[float], shares: Sequence[float], noise_to_power: float
) -> NDArray[np.float64]:
    """Equation (5) under Rayleigh fading, for the messages with a share."""
    coding = Superposition(tuple(rates[: len(shares)]), tuple(shares))
    return np.exp(-coding.thresholds(noise_to_power))
