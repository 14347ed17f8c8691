"""The power split that makes D = sum_i 1/p_i smallest: proposition 1, corrected and generalised.

With k_i = u'_i prod_{j<i} (1 + u'_j), thresholds t_i are reachable exactly when
(c/P) sum_i k_i / t_i = 1. D is then sum_i exp(t_i) under Rayleigh fading.

To first order in c/P this is sum_i t_i, smallest at t_i proportional to sqrt(k_i): the closed form.
A message is decoded only after those before it, so thresholds that come out of order (a k_i below
an earlier one, with unequal rates) would spend power on a message that still waits for another.
Such neighbours share one threshold, which stands for the mean of their k_i.

For equal rates the k_i are in order. For S = 2 the closed form is then lambda* = (u' + s) /
(1 + u' + s) with s = sqrt(1 + u') (erratum E1; the formula printed in the paper exceeds 1).
"""

from collections.abc import Sequence

import numpy as np

from slimfl.radio.superposition import Floats, sinr_target

#: A threshold beside which the differences between thresholds vanish.
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

    Minimising sum_i exp(t_i) is convex in t. Where nothing else binds, t_i^2 exp(t_i) = nu k_i, so
    t_i = 2 W(sqrt(nu k_i) / 2) with Lambert's W, here as Wright's omega of the logarithm, which
    does not overflow. The k_i that are out of order are pooled here too; nu is the root that uses
    all the power.
    """
    # SciPy takes a sixth of the start-up time of a run, and few runs ask for this split
    from scipy.optimize import brentq
    from scipy.special import wrightomega

    targets = sinr_target(spectral_efficiencies)
    burdens = _burdens(targets)
    log_pooled = np.log(_pooled(burdens))

    def thresholds(log_nu: float) -> Floats:
        return np.asarray(2 * wrightomega((log_nu + log_pooled) / 2 - np.log(2)))

    def excess(log_nu: float) -> float:
        return float(noise_to_power * (burdens / thresholds(log_nu)).sum() - 1)

    # were all thresholds equal, they would be this; at the root, some are below it and some above
    equal = noise_to_power * float(burdens.sum())
    if equal > VERY_LARGE:  # the largest exp(t_i) is all of D, so equal thresholds are the optimum
        return _split(targets, np.ones_like(targets))
    middle = equal + 2 * np.log(equal)
    low, high = middle - log_pooled.max() - 1, middle - log_pooled.min() + 1
    return _split(targets, thresholds(brentq(excess, low, high, xtol=1e-12)))


def rounded_split(spectral_efficiencies: Sequence[float]) -> tuple[float, ...]:
    """The closed form in as few decimals as still sum to 1 and can be decoded, for a person."""
    targets = sinr_target(spectral_efficiencies)
    exact = optimal_split(spectral_efficiencies)
    for decimals in range(3, 16):
        later = [round(share, decimals) for share in exact[1:]]
        shares = np.array([round(1 - sum(later), decimals), *later])
        after = shares[::-1].cumsum()[::-1] - shares
        if (shares > 0).all() and (shares - targets * after > 0).all():
            return tuple(shares.tolist())
    return exact


def _burdens(targets: Floats) -> Floats:
    before = np.concatenate([[1.0], np.cumprod(1 + targets)[:-1]])
    return np.asarray(targets * before)


def _pooled(burdens: Floats) -> Floats:
    """The k_i, with neighbours that are out of order replaced by their mean until none are."""
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
