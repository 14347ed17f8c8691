"""The power split that minimises D = sum_i 1/p_i: proposition 1, corrected and generalised.

With k_i = u'_i prod_{j<i} (1 + u'_j), thresholds t_i are reachable exactly when
(c/P) sum_i k_i / t_i = 1. D is then sum_i exp(t_i) under Rayleigh fading.

To first order in c/P this is sum_i t_i, which is smallest for t_i proportional to sqrt(k_i): the
closed form. A message is decoded only after those before it, so thresholds that come out of order
(a k_i below an earlier one, with unequal rates) would spend power on a message that still waits for
another. Such neighbours share one threshold, which follows from the mean of their k_i.

For equal rates the k_i are in order, and for S = 2 the closed form is lambda* = (u' + s) / (1 + u'
+ s) with s = sqrt(1 + u') (erratum E1; the formula printed in the paper exceeds 1).
"""

from collections.abc import Sequence

import numpy as np

from slimfl.radio.superposition import Floats, sinr_target

#: For larger thresholds, the differences between them are negligible.
VERY_LARGE = 1e9


def optimal_split(spectral_efficiencies: Sequence[float]) -> tuple[float, ...]:
    """The closed form, independent of the noise; narrowest segment first.

    >>> [round(share, 3) for share in optimal_split([1.5, 1.5])]
    [0.778, 0.222]
    """
    targets = sinr_target(spectral_efficiencies)
    return _split(targets, np.sqrt(_pooled(_burdens(targets))))


def optimal_split_numeric(
    spectral_efficiencies: Sequence[float], noise_to_power: float
) -> tuple[float, ...]:
    """The exact optimum for a given c / P under Rayleigh fading.

    Minimising sum_i exp(t_i) is convex in t. If no other constraint is active, t_i^2 exp(t_i) = nu
    k_i, so t_i = 2 W(sqrt(nu k_i) / 2) with Lambert's W, here as Wright's omega of the logarithm,
    which does not overflow. The k_i that are out of order are pooled here too; nu is the root that
    uses all the power.
    """
    # imported here: SciPy takes a sixth of a run's start-up time, and few runs need this split
    from scipy.optimize import brentq
    from scipy.special import wrightomega

    targets = sinr_target(spectral_efficiencies)
    burdens = _burdens(targets)
    log_pooled = np.log(_pooled(burdens))

    def thresholds(log_nu: float) -> Floats:
        return np.asarray(2 * wrightomega((log_nu + log_pooled) / 2 - np.log(2)))

    def excess(log_nu: float) -> float:
        return float(noise_to_power * (burdens / thresholds(log_nu)).sum() - 1)

    # the value of equal thresholds; at the root, some are below it and some above
    equal = noise_to_power * float(burdens.sum())
    if equal > VERY_LARGE:  # the largest exp(t_i) dominates D, so equal thresholds are optimal
        return _split(targets, np.ones_like(targets))
    middle = equal + 2 * np.log(equal)
    low, high = middle - log_pooled.max() - 1, middle - log_pooled.min() + 1
    return _split(targets, thresholds(brentq(excess, low, high, xtol=1e-12)))


def rounded_split(
    spectral_efficiencies: Sequence[float], residual: float = 0.0
) -> tuple[float, ...] | None:
    """A good split with as few decimals as possible, for use in messages.

    None if the residual interference makes every split fail.
    """
    targets = sinr_target(spectral_efficiencies)
    if residual:
        exact = split_of_margins(targets, np.ones_like(targets), residual)
        if exact is None:
            return None
    else:
        exact = optimal_split(spectral_efficiencies)
    for decimals in range(3, 16):
        later = [round(share, decimals) for share in exact[1:]]
        shares = np.array([round(1 - sum(later), decimals), *later])
        after = shares[::-1].cumsum()[::-1] - shares
        around = after + residual * (shares.cumsum() - shares)
        if (shares > 0).all() and (shares - targets * around > 0).all():
            return tuple(shares.tolist())
    return exact


def split_of_margins(
    targets: Floats, margins: Floats, residual: float = 0.0
) -> tuple[float, ...] | None:
    """The split whose thresholds are proportional to 1 / margins; None if there is none.

    Message i has the threshold 1 / margins_i where P_i / u'_i less the power that interferes with
    it is margins_i: linear equations. All splits that can be decoded come from positive margins.
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
    before = np.concatenate([[1.0], np.cumprod(1 + targets)[:-1]])
    return np.asarray(targets * before)


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


def _split(targets: Floats, thresholds: Floats) -> tuple[float, ...]:
    """Power shares whose thresholds are proportional to the given ones."""
    margins = targets / thresholds
    after = 0.0
    shares = np.empty_like(margins)
    for i in reversed(range(len(margins))):
        shares[i] = margins[i] + targets[i] * after
        after += shares[i]
    return tuple((shares / after).tolist())
