"""Splits of the power: in closed form, numerically for any objective, per device, and learned.

With u'_i the SINR that message i needs and k_i = u'_i prod_{j<i} (1 + u'_j), thresholds t_i are
reachable exactly when (c/P) sum_i k_i / t_i = 1: b_i = (c/P) k_i / t_i is message i's share of the
power budget, and its power after interference is b_i over prod_{j<i} (1 + u'_j). A message is
decoded only after those before it, so thresholds that come out of order would spend power on a
message that still waits for another.

* `optimal_split`: proposition 1, corrected and generalised; independent of the noise.
* `optimal_split_numeric`: the exact optimum of the same objective under Rayleigh fading.
* `best_split`: the best of any `Objective` for any decoding probabilities.
* `weighted_split`, `first_outage_split`: for one device, from its own c/P.
* `GainBelief`: the c/P of devices that do not know it, learned from what was decoded.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.radio.channel import Indices, Signal
from slimfl.radio.coding import Floats, Superposition, interference, sinr_target

Split = tuple[float, ...]

# --- in closed form, and exactly under Rayleigh fading --------------------------------------------

#: For larger thresholds, the differences between them are negligible.
VERY_LARGE = 1e9


def optimal_split(spectral_efficiencies: Sequence[float]) -> Split:
    """The split that minimises D = sum_i 1/p_i to first order in c/P; narrowest segment first.

    D is sum_i exp(t_i) under Rayleigh fading, to first order sum_i t_i, which is smallest for t_i
    proportional to sqrt(k_i). Neighbours whose k_i are out of order (with unequal rates) share one
    threshold, which follows from the mean of their k_i. For equal rates and S = 2 it is lambda* =
    (u' + s) / (1 + u' + s) with s = sqrt(1 + u') (erratum E1; the printed formula exceeds 1).

    >>> [round(share, 3) for share in optimal_split([1.5, 1.5])]
    [0.778, 0.222]
    """
    targets = sinr_target(spectral_efficiencies)
    return _with_thresholds(targets, np.sqrt(_pooled(_burdens(targets))))


def optimal_split_numeric(spectral_efficiencies: Sequence[float], noise_to_power: float) -> Split:
    """The exact optimum for a given c / P under Rayleigh fading.

    Minimising sum_i exp(t_i) is convex in t. If no other constraint is active, t_i^2 exp(t_i) = nu
    k_i, so t_i = 2 W(sqrt(nu k_i) / 2) with Lambert's W, here as Wright's omega of the logarithm,
    which does not overflow. The k_i that are out of order are pooled here too; nu is the root that
    uses all the power.
    """
    targets = sinr_target(spectral_efficiencies)
    burdens = _burdens(targets)
    log_pooled = np.log(_pooled(burdens))

    def thresholds(log_nu: float) -> Floats:
        return np.asarray(2 * scipy.special.wrightomega((log_nu + log_pooled) / 2 - np.log(2)))

    def excess(log_nu: float) -> float:
        return float(noise_to_power * (burdens / thresholds(log_nu)).sum() - 1)

    # the value of equal thresholds; at the root, some are below it and some above
    equal = noise_to_power * float(burdens.sum())
    if equal > VERY_LARGE:  # the largest exp(t_i) dominates D, so equal thresholds are optimal
        return _with_thresholds(targets, np.ones_like(targets))
    middle = equal + 2 * np.log(equal)
    low, high = middle - log_pooled.max() - 1, middle - log_pooled.min() + 1
    return _with_thresholds(
        targets, thresholds(scipy.optimize.brentq(excess, low, high, xtol=1e-12))
    )


def rounded_split(spectral_efficiencies: Sequence[float], residual: float = 0.0) -> Split | None:
    """A good split with as few decimals as possible, for use in messages.

    None if the residual interference makes every split fail.
    """
    targets = sinr_target(spectral_efficiencies)
    exact = optimal_split(spectral_efficiencies)
    if residual:
        found = split_of_margins(targets, np.ones_like(targets), residual)
        if found is None:
            return None
        exact = found
    for decimals in range(3, 16):
        later = [round(share, decimals) for share in exact[1:]]
        shares = np.array([round(1 - sum(later), decimals), *later])
        if (shares > 0).all() and (shares > targets * interference(shares, residual)).all():
            return tuple(shares.tolist())
    return exact


def split_of_margins(targets: Floats, margins: Floats, residual: float = 0.0) -> Split | None:
    """The split whose thresholds are proportional to 1 / margins; None if there is none.

    Message i has the threshold 1 / margins_i where P_i / u'_i less the power that interferes with
    it is margins_i: linear equations. All splits that can be decoded come from positive margins.

    Args:
        targets: [message] u'_i.
        margins: [message] positive.
        residual: Share of a cancelled message's power that still interferes.
    """
    count = len(targets)
    interferes = np.triu(np.ones((count, count)), 1)
    interferes += residual * np.tril(np.ones((count, count)), -1)
    try:
        shares = np.linalg.solve(np.diag(1 / targets) - interferes, margins)
    except np.linalg.LinAlgError:
        return None
    if not (shares > 0).all():
        return None
    return tuple((shares / shares.sum()).tolist())


def _burdens(targets: Floats) -> Floats:
    """The k_i."""
    return np.asarray(targets * np.concatenate([[1.0], np.cumprod(1 + targets)[:-1]]))


def _pooled(burdens: Floats) -> Floats:
    """The k_i in order: neighbours that are not are replaced by their mean."""
    blocks: list[tuple[float, int]] = []
    for burden in burdens.tolist():
        mean, count = burden, 1
        while blocks and blocks[-1][0] > mean:
            before, length = blocks.pop()
            mean = (before * length + mean * count) / (length + count)
            count += length
        blocks.append((mean, count))
    means, counts = zip(*blocks, strict=True)
    return np.repeat(np.array(means), counts)


def _with_thresholds(targets: Floats, thresholds: Floats) -> Split:
    """Power shares whose thresholds are proportional to the given ones."""
    return _with_power_left(targets, targets / thresholds)


def _with_power_left(targets: Floats, left: Floats) -> Split:
    """Power shares with a_i proportional to `left`: what interference leaves of message i."""
    shares, after = np.empty_like(left), 0.0
    for i in reversed(range(len(left))):
        shares[i] = left[i] + targets[i] * after
        after += shares[i]
    return tuple((shares / after).tolist())


# --- numerically, for any objective ---------------------------------------------------------------

#: Limit of the logarithm of the ratio of two margins, small enough not to suffer from rounding.
WIDEST = 18.0
#: The cost of a split with which a segment never arrives, or one that is not allowed.
NEVER = 1e300


def inverse_probability_sum(probabilities: ArrayLike) -> float:
    """D = sum_i 1/p_i, the channel's part of the bound; infinite if a segment never arrives."""
    with np.errstate(divide="ignore", over="ignore"):
        return float((1 / np.asarray(probabilities, dtype=np.float64)).sum())


#: From the decoding probabilities [message] of a split to its cost.
Objective = Callable[[Floats], float]


def delivered(sizes: Sequence[float]) -> Objective:
    """Of the expected share of the parameters that arrives, sum_i n_i p_i / sum_i n_i, at most 1.

    Args:
        sizes: [message] parameters or bits.
    """
    weights = np.asarray(sizes) / np.sum(sizes)
    return lambda probabilities: -float(weights @ probabilities)


def with_first_outage(most: float) -> Objective:
    """D among the splits with which segment 1 is lost no more often than this.

    Args:
        most: Above 0 and below 1.
    """

    def cost(probabilities: Floats) -> float:
        excess = 1 - float(probabilities[0]) - most
        # whatever keeps the outage is better
        return inverse_probability_sum(probabilities) if excess <= 0 else NEVER * (1 + excess)

    return cost


def objective_of(section: RadioSection, bits: Sequence[float], count: int) -> Objective:
    """What `radio.split_objective` says.

    Args:
        section: The radio.
        bits: Those of every message; all alike if they are not known.
        count: The number of messages.
    """
    if section.split_objective == "delivered":
        return delivered(bits or (1.0,) * count)
    if section.split_objective == "first-outage":
        return with_first_outage(section.first_outage)
    return inverse_probability_sum


def best_split(
    probabilities: Callable[[Split], Floats],
    spectral_efficiencies: Sequence[float],
    objective: Objective = inverse_probability_sum,
    *,
    residual: float = 0.0,
    orthogonal: bool = False,
) -> Split:
    """The split with the best objective, found numerically.

    Every split that can be decoded comes from positive margins (`split_of_margins`), so the search
    runs over their logarithms and never meets an infeasible split.

    Args:
        probabilities: From a split to the decoding probability of every message.
        spectral_efficiencies: u/W of every message in bit/s/Hz.
        objective: What to minimise: D of theorem 1's bound, `delivered`, `with_first_outage`, or
            any other function of the probabilities.
        residual: Share of a cancelled message's power that still interferes.
        orthogonal: Whether messages are sent in turn, so that any split can be decoded.

    >>> from slimfl.radio import Superposition, Rayleigh
    >>> rates = (1.5, 1.5)
    >>> def arrives(split):
    ...     return Rayleigh().survival(Superposition(rates, split).thresholds(0.05))
    >>> [round(share, 3) for share in best_split(arrives, rates)]
    [0.772, 0.228]
    """
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

    def cost(others: Floats) -> float:
        # relative to the margin of segment 1, so that every point is a different split
        found = objective(probabilities(split(np.insert(others, 0, 0.0))))
        return found if np.isfinite(found) else NEVER

    options: Any = {"xatol": 1e-6, "fatol": 1e-12, "maxiter": 400 * count}
    ends = [
        scipy.optimize.minimize(cost, start[1:] - start[0], method="Nelder-Mead", options=options)
        for start in _starts(targets, residual, orthogonal)
    ]
    best = min(ends, key=lambda end: float(end.fun))
    found = split(np.insert(best.x, 0, 0.0))
    if best.fun > NEVER:
        smallest = 1 - float(probabilities(found)[0])
        raise RequestError(
            f"segment 1 has an outage of at least {smallest:.3g} with any split; a smaller one "
            "needs more power or a lower rate"
        )
    return found


def _starts(targets: Floats, residual: float, orthogonal: bool) -> Iterator[Floats]:
    """Logarithms of margins: equal thresholds, the closed form for Rayleigh, and steeper ones.

    The steepest gives nearly all power to segment 1. Where that is best, the others end elsewhere.
    """
    count = len(targets)
    yield np.zeros(count)
    if not orthogonal and not residual:
        shares = np.array(optimal_split(np.log2(1 + targets).tolist()))
        yield np.asarray(np.log(shares / targets - interference(shares, 0.0)))
    for steepness in (1.0, 8.0):
        yield -steepness * np.arange(count, dtype=np.float64)


# --- for one device, from its mean gain; docs/theory.md derives it --------------------------------

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
) -> Split:
    """Shares of the messages that are worth sending, which maximise sum_i w_i p_i.

    With r = c / P, message i arrives with probability exp(-r k_i / b_i) under Rayleigh fading. As a
    function of its share b_i of the budget that is S-shaped: convex for t_i > 2, then concave. So
    the best choice of a distant device is to leave out the last messages and send the first ones
    with all the power.

    Args:
        spectral_efficiencies: u/W of every message in bit/s/Hz.
        noise_to_power: c / P of the device.
        weights: What every message is worth.

    >>> [round(share, 3) for share in weighted_split([1.5, 1.5], 0.05, [1, 1])]
    [0.787, 0.213]
    >>> weighted_split([1.5, 1.5], 1.5, [1, 1])
    (1.0,)
    """
    targets = sinr_target(spectral_efficiencies)
    burdens = _burdens(targets) * noise_to_power
    return _with_budget(targets, _best_budget(burdens, np.asarray(weights, np.float64)))


def first_outage_split(
    spectral_efficiencies: Sequence[float], noise_to_power: float, outage: float
) -> Split:
    """Lose message 1 with this probability, if the power suffices; the rest is for the others.

    Args:
        spectral_efficiencies: u/W of every message in bit/s/Hz.
        noise_to_power: c / P of the device.
        outage: The probability.
    """
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
    others = _best_budget(burdens[1:] / (1 - first), np.ones(len(burdens) - 1))
    return _with_budget(targets, np.concatenate([[first], (1 - first) * others]))


def _with_budget(targets: Floats, budget: Floats) -> Split:
    """Power shares from shares of the budget; messages from the first zero on are not sent."""
    sent = int(np.argmin(budget > 0)) if (budget <= 0).any() else len(budget)
    if sent <= 1:
        return (1.0,)
    targets = targets[:sent]
    return _with_power_left(targets, budget[:sent] * targets / _burdens(targets))


def _value(burdens: Floats, weights: Floats, budget: Floats) -> float:
    """sum_i w_i p_i, with the running maximum of equation (5)."""
    with np.errstate(divide="ignore", over="ignore"):
        thresholds = np.maximum.accumulate(burdens / np.maximum(budget, 0))
    return float(weights @ np.exp(-thresholds))


def _best_budget(burdens: Floats, weights: Floats) -> Floats:
    """The shares of the budget that maximise sum_i w_i p_i."""
    match len(burdens):
        case 1:
            return np.ones(1)
        case 2:
            return _best_of_two(burdens, weights)
        case _:
            return _best_of_many(burdens, weights)


def _best_of_two(burdens: Floats, weights: Floats) -> Floats:
    """Exact: compares the ends of the range and every root of the derivative in between."""
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
    roots = [
        float(scipy.optimize.brentq(slope, points[i], points[i + 1], xtol=1e-14)) for i in peaks
    ]
    budgets = [np.array([1 - second, second]) for second in (0.0, most, *roots)]
    return max(budgets, key=lambda budget: _value(burdens, weights, budget))


def _best_of_many(burdens: Floats, weights: Floats) -> Floats:
    """Numerically, starting from the first-order closed form for every number of messages sent."""
    best: Floats = np.eye(len(burdens))[0]
    highest = float(weights[0] * np.exp(-burdens[0]))
    for sent in range(2, len(burdens) + 1):
        # to first order, sum_i w_i t_i is smallest for t_i proportional to sqrt(k_i / w_i)
        start = np.sqrt(burdens[:sent] * weights[:sent])

        def loss(logits: Floats, sent: int = sent) -> float:
            budget = np.exp(logits - logits.max())
            return -_value(burdens[:sent], weights[:sent], budget / budget.sum())

        found = scipy.optimize.minimize(loss, np.log(start), method="Nelder-Mead",
                         options={"xatol": 1e-9, "fatol": 1e-14, "maxiter": 4000})  # fmt: skip
        if -found.fun > highest * (1 + 1e-12):
            budget = np.exp(found.x - found.x.max())
            highest, best = -found.fun, np.zeros(len(burdens))
            best[:sent] = budget / budget.sum()
    return best


#: Devices with the same mean gain and the same number of messages: c / P, that number, and how
#: many of them can be reached.
Crowd = tuple[float, int, float]


def bound_weights(spectral_efficiencies: Sequence[float], crowds: Sequence[Crowd]) -> Split:
    """The w_i for which devices that each maximise sum_i w_i p_i minimise the bound's D.

    Segment i is a mean over sum_k p_ki devices, so D = sum_i 1 / pbar_i with pbar_i the mean over
    all devices, and dD / dp_ki is proportional to -1 / pbar_i^2 for every device: w_i = pbar_i^-2.
    Splits depend on the weights and the weights on the splits; the iteration keeps the best D.
    """
    rates = tuple(spectral_efficiencies)
    if len(rates) == 1 or all(messages < len(rates) for _, messages, _ in crowds):
        return (1.0,) * len(rates)
    weights, best = np.ones(len(rates)), np.ones(len(rates))
    lowest = np.inf
    for _ in range(_ITERATIONS):
        mean = _mean_probabilities(rates, crowds, weights)
        term = inverse_probability_sum(mean)
        if term < lowest * (1 - 1e-9):
            lowest, best = term, weights
        # limit the weight of a segment that no device sends any more
        implied = 1 / np.maximum(mean, 1e-6) ** 2
        implied /= implied[0]
        if np.allclose(implied, weights, rtol=1e-4):
            break
        weights = np.sqrt(implied * weights)
    return tuple((best / best[0]).tolist())


def _mean_probabilities(rates: Split, crowds: Sequence[Crowd], weights: Floats) -> Floats:
    """[message]: over all devices, under Rayleigh fading."""
    total = np.zeros(len(rates))
    for noise_to_power, messages, count in crowds:
        sent = rates[:messages]
        shares = weighted_split(sent, noise_to_power, weights[:messages].tolist())
        coding = Superposition(sent[: len(shares)], shares)
        total[: len(shares)] += count * np.exp(-coding.thresholds(noise_to_power))
    return total / sum(count for _, _, count in crowds)


# --- learned --------------------------------------------------------------------------------------

#: Newton's steps towards the largest posterior density, and the longest of them.
_STEPS, _LONGEST = 25, 1.0
#: Within this of ln(c / P) a posterior is at its largest.
_CLOSE = 1e-10
_DB = np.log(10) / 10
#: How unsure the server is of a device of which it has heard nothing.
PRIOR_DEVIATION_DB = 8.0


class GainBelief:
    """What the server believes of every device's mean gain: mean and variance of ln(c / P).

    Under Rayleigh fading a device with x = ln(c / P) gets at least the first j messages through
    with probability exp(-k_j e^x), k_j their threshold at c / P = 1. So a round in which exactly d
    messages arrive has the likelihood exp(-k_d e^x) - exp(-k_{d+1} e^x), with k_0 = 0 and no second
    term once all arrive. It is log-concave in x, because the logarithm of an exponential variable
    has a log-concave density. The belief is normal in x; a round moves it to the largest posterior
    density and takes the curvature there as its precision (Laplace's approximation).

    Between rounds the variance grows, so that old rounds are forgotten when devices move.

    Args:
        devices: How many there are.
        noise_to_power: c / P that the server expects of any of them.
        drift_db: Deviation by which a device's mean gain changes per round.
    """

    def __init__(self, devices: int, noise_to_power: float, drift_db: float) -> None:
        self.mean = np.full(devices, np.log(noise_to_power))
        self.variance = np.full(devices, (PRIOR_DEVIATION_DB * _DB) ** 2)
        self.drift = (drift_db * _DB) ** 2
        """By which the variance grows per round, up to that of the beginning."""

    def noise_to_power(self, ids: Indices) -> Floats:
        """The most likely c / P of some devices."""
        return np.asarray(np.exp(self.mean[ids]))

    def observe(self, ids: Indices, signals: Sequence[Signal], decoded: Sequence[int]) -> None:
        """Learn from a round.

        Args:
            ids: [row] the devices that sent.
            signals: [row] what they sent.
            decoded: [row] how many messages of it were decoded.
        """
        most = (PRIOR_DEVIATION_DB * _DB) ** 2
        self.variance = np.minimum(self.variance + self.drift, most)
        if not len(ids):
            return
        bounds = np.array([_interval(s, d) for s, d in zip(signals, decoded, strict=True)])
        mean, variance = self.mean[ids], self.variance[ids]
        x = mean.copy()
        for _ in range(_STEPS):
            slope, curvature = _likelihood(x, bounds)
            step = (slope - (x - mean) / variance) / (1 / variance - curvature)
            step = np.clip(step, -_LONGEST, _LONGEST)
            x = x + step
            if np.abs(step).max() < _CLOSE:
                break
        _, curvature = _likelihood(x, bounds)
        self.mean[ids], self.variance[ids] = x, 1 / (1 / variance - curvature)

    def state(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint holds."""
        return {"mean": self.mean.copy(), "variance": self.variance.copy()}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take back what `state` gave."""
        self.mean = np.array(state["mean"], np.float64)
        self.variance = np.array(state["variance"], np.float64)


def _interval(sent: Signal, decoded: int) -> tuple[float, float]:
    """The thresholds, at c / P = 1, between which the gain must have been."""
    thresholds = np.maximum.accumulate(sent.coding.thresholds(1.0))
    low = float(thresholds[decoded - 1]) if decoded else 0.0
    return low, float(thresholds[decoded]) if decoded < len(thresholds) else np.inf


def _likelihood(x: Floats, bounds: Floats) -> tuple[Floats, Floats]:
    """First and second derivative of ln(exp(-a e^x) - exp(-b e^x)) in x.

    With A = a e^x, B = b e^x and q = 1 / (e^(B - A) - 1) it is -A + ln(1 - e^-(B - A)), so the
    first derivative is -A + (B - A) q and the second that plus -(B - A)^2 q (1 + q).
    """
    scale = np.exp(x)
    low = bounds[:, 0] * scale
    ends = np.isfinite(bounds[:, 1])
    gap = np.where(ends, bounds[:, 1], bounds[:, 0] + 1.0) * scale - low
    odds = np.where(ends, 1 / np.expm1(np.clip(gap, 1e-300, 700)), 0.0)
    slope = -low + gap * odds
    return slope, slope - gap**2 * odds * (1 + odds)
