"""The variance of the global gradient f_t: the part that lemma 1 bounds, and the rest.

Around the gradient of F, the mean square error of f_t is a sum over segments of three parts:

* noise: the sampling noise of the devices that delivered, the quantity of lemma 1;
* selection: *which* devices delivered, when their gradients differ (non-IID data);
* missing: no device delivered, so the step is zero instead of the gradient.

With m devices out of K delivering, m binomial, n the mean over devices of their noise, s^2 that of
the squared distance between mean g^k and grad F, all in one segment, the server's average has

    noise     = n   E[1/m; m > 0]
    selection = s^2 E[(K - m) / (m (K - 1)); m > 0]      (drawing m of K without replacement)
    missing   = norm(grad F)^2 Pr(m = 0).

f_t of section V, which divides by K p instead of m, has n / (K p), then (1 - p) / (K p) times the
mean squared norm of mean g^k, and nothing missing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lab.convex.problem import (
    Aggregation,
    ConvexProblem,
    Floats,
    aggregation_weights,
    noisy_gradients,
)
from slimfl.radio import Coding, OutageLink

#: Number of draws at a time, few enough for their arrays to fit into the cache.
CHUNK = 500


@dataclass(frozen=True)
class Deliveries:
    """Moments of the binomial number m of the K devices that deliver a segment, one per segment."""

    nobody: Floats
    """Pr(m = 0)."""
    inverse: Floats
    """E[1/m; m > 0]; the proof of lemma 1 uses 1 / (K p)."""
    left_out: Floats
    """E[(K - m) / (m (K - 1)); m > 0]."""


def deliveries(probabilities: ArrayLike, devices: int) -> Deliveries:
    """The moments of every segment, from its decoding probability."""
    from scipy.special import gammaln, xlog1py, xlogy  # scipy.stats would take seconds to import

    p = np.asarray(probabilities, np.float64)[:, None]
    m = np.arange(1, devices + 1)
    ways = gammaln(devices + 1) - gammaln(m + 1) - gammaln(devices - m + 1)
    mass = np.exp(ways + xlogy(m, p) + xlog1py(devices - m, -p))
    others = max(devices - 1, 1)  # a single device is never left out of a delivery
    return Deliveries(
        nobody=np.asarray((1 - p[:, 0]) ** devices),
        inverse=np.asarray((mass / m).sum(1)),
        left_out=np.asarray((mass * (devices - m) / (m * others)).sum(1)),
    )


@dataclass(frozen=True)
class Variance:
    """The parts of the mean square error of f_t, in every segment."""

    noise: Floats
    selection: Floats
    missing: Floats

    @property
    def total(self) -> float:
        """The mean squared distance of f_t from grad F."""
        return float((self.noise + self.selection + self.missing).sum())


def exact_variance(
    problem: ConvexProblem,
    model: Floats,
    probabilities: Floats,
    aggregation: Aggregation = "delivered",
) -> Variance:
    """The closed form at a model."""
    local = problem.gradients(model[None])[0]
    gradient = local.mean(0)
    noise = _by_segment(problem, (problem.noise_deviations**2).mean(0))
    if aggregation == "delivered":
        moments = deliveries(probabilities, problem.devices)
        spread = _by_segment(problem, ((local - gradient) ** 2).mean(0))
        return Variance(
            noise * moments.inverse,
            spread * moments.left_out,
            _by_segment(problem, gradient**2) * moments.nobody,
        )
    if aggregation == "literal":
        raise ValueError("equation (6) as printed changes the model itself, not only its gradient")
    expected = problem.devices * probabilities
    size = _by_segment(problem, (local**2).mean(0))
    return Variance(noise / expected, size * (1 - probabilities) / expected, np.zeros_like(noise))


def sampled_variance(
    problem: ConvexProblem,
    model: Floats,
    channel: OutageLink,
    signal: Coding,
    draws: int,
    seed: int = 0,
    aggregation: Aggregation = "delivered",
) -> Variance:
    """The same, measured over rounds that all start from one model."""
    devices, of = problem.devices, problem.segments.segment_of
    probabilities = channel.decoding_probabilities(signal)
    mean_gradients = problem.gradients(model[None])
    gradient = mean_gradients.mean(1)
    sums = np.zeros((3, len(of)))
    for number, start in enumerate(range(0, draws, CHUNK)):
        count = min(CHUNK, draws - start)
        gains = channel.gains(seed, number, count * devices).reshape(count, devices)
        share = aggregation_weights(channel.decoded(signal, gains), probabilities, aggregation)
        share = share[..., of]
        models = np.broadcast_to(model, (count, len(model)))
        noisy = (share * noisy_gradients(problem, models, seed, number)).sum(1)
        noiseless = (share * mean_gradients).sum(1)
        missing = (share.sum(1) == 0) & (aggregation == "delivered")
        away = (noiseless - gradient) ** 2
        sums += [
            ((noisy - noiseless) ** 2).sum(0),
            np.where(missing, 0, away).sum(0),
            np.where(missing, away, 0).sum(0),
        ]
    return Variance(*(_by_segment(problem, part) for part in sums / draws))


def _by_segment(problem: ConvexProblem, values: Floats) -> Floats:
    """Sums over the coordinates of each segment."""
    sums = np.bincount(problem.segments.segment_of, values, minlength=len(problem.weights))
    return sums.astype(np.float64)
