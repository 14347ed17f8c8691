"""SlimFL on ridge regression, a problem in which every quantity in theorem 1 is known.

Width i uses the first d_i coordinates, mask Xi_i. Device k holds features A_k and targets b_k, so

    F^k(theta) = norm(A_k theta - b_k)^2 / (2 n) + ridge / 2 norm(theta)^2,
    g^k        = sum_i w_i (grad F^k(theta . Xi_i) + noise) . Xi_i,
    F(theta)   = mean_k sum_i w_i F^k(theta . Xi_i).

F is the function whose gradient f_t of section V estimates. It is quadratic: L, mu, theta* and F*
follow from its Hessian. The sampling noise is Gaussian with a given variance: sigma_k^2 of
assumption 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from slimfl.errors import RequestError
from slimfl.nn import Segments
from slimfl.radio import Coding, OutageLink
from slimfl.radio.bound import learning_rate
from slimfl.rng import generator

Floats = NDArray[np.float64]

#: How the server merges the segments that arrived: `delivered` averages over the devices that
#: delivered, as `RunningMean` does; `unbiased` is f_t of section V, a sum over them divided by the
#: expected number K p; `literal` is equation (6) as printed, which divides the sum of the *models*
#: by K p.
Aggregation = Literal["delivered", "unbiased", "literal"]

SAMPLES = 64
RIDGE = 0.1


@dataclass(frozen=True, eq=False)
class ConvexProblem:
    """A federation of K devices with a ridge regression each, in d coordinates and S widths."""

    features: Floats
    """A_k: K x n x d."""
    targets: Floats
    """b_k: K x n."""
    segments: Segments
    weights: tuple[float, ...]
    """w_i, the weight of every width in the local loss."""
    noise_variances: Floats
    """sigma_k^2 of every device; their mean is delta."""
    noise_shares: tuple[float, ...]
    """The share of sigma_k^2 in every segment."""
    shared_noise: bool = True
    """True if all widths use the same sample and share its noise; otherwise each has its own."""
    at_optimum: bool = False
    """True if training starts at theta* instead of zero."""
    ridge: float = RIDGE

    @property
    def devices(self) -> int:
        """K."""
        return len(self.targets)

    @cached_property
    def masks(self) -> NDArray[np.bool_]:
        """Xi_i, one row per width."""
        return np.array([self.segments.mask(width) for width in self.segments.widths])

    @cached_property
    def local_hessians(self) -> Floats:
        """The Hessian of every F^k."""
        count, dimension = self.features.shape[1:]
        moments = np.swapaxes(self.features, 1, 2) @ self.features / count
        return np.asarray(moments + self.ridge * np.eye(dimension))

    @cached_property
    def curvatures(self) -> Floats:
        """sum_i w_i Xi_i H_k Xi_i: the derivative of the mean of g^k."""
        overlap = np.einsum("i,ia,ib->ab", self.weights, self.masks, self.masks)
        return np.asarray(self.local_hessians * overlap)

    @cached_property
    def pulls(self) -> Floats:
        """Minus the mean of g^k at theta = 0."""
        correlations = np.einsum("kna,kn->ka", self.features, self.targets)
        return np.asarray(self.weights @ self.masks * correlations / self.features.shape[1])

    @cached_property
    def hessian(self) -> Floats:
        """The Hessian of F."""
        return np.asarray(self.curvatures.mean(0))

    @cached_property
    def optimum(self) -> Floats:
        """theta*, where the gradient of F is zero."""
        return np.asarray(np.linalg.solve(self.hessian, self.pulls.mean(0)))

    @property
    def start(self) -> Floats:
        """theta_1."""
        return self.optimum if self.at_optimum else np.zeros_like(self.optimum)

    @cached_property
    def _extreme_eigenvalues(self) -> tuple[float, float]:
        every = np.linalg.eigvalsh(np.concatenate([self.local_hessians, self.hessian[None]]))
        return float(every.min()), float(every.max())

    @property
    def strong_convexity(self) -> float:
        """mu: the smallest eigenvalue of the Hessians of F and of every F^k."""
        return self._extreme_eigenvalues[0]

    @property
    def smoothness(self) -> float:
        """L: the largest eigenvalue of the Hessians of F and of every F^k."""
        return self._extreme_eigenvalues[1]

    @property
    def delta(self) -> float:
        """The mean over devices of the variance of a local gradient."""
        return float(self.noise_variances.mean())

    @property
    def initial_distance_squared(self) -> float:
        """Delta_1, the squared distance of theta_1 from theta*."""
        away = self.start - self.optimum
        return float(away @ away)

    @cached_property
    def noise_deviations(self) -> Floats:
        """The deviation of g^k in every coordinate: K x d."""
        widths = np.array(self.weights)
        later = widths[::-1].cumsum()[::-1] ** 2
        if not self.shared_noise:
            later = (widths**2)[::-1].cumsum()[::-1]
        per_coordinate = later * self.noise_shares / self.segments.sizes
        return np.sqrt(np.outer(self.noise_variances, per_coordinate[self.segments.segment_of]))

    def gradients(self, models: Floats) -> Floats:
        """The mean of g^k over the sampling noise: for R models, R x K x d."""
        count, dimension = models.shape
        flat = models @ self.curvatures.transpose(2, 0, 1).reshape(dimension, -1)
        return np.asarray(flat.reshape(count, self.devices, dimension) - self.pulls)

    def gap(self, models: Floats) -> Floats:
        """F - F* of R models, or of one."""
        away = models - self.optimum
        return np.asarray(((away @ self.hessian) * away).sum(-1) / 2)


def ridge_problem(
    weights: Sequence[float],
    devices: int = 10,
    non_iid: float = 0.0,
    delta: float = 1.0,
    seed: int = 0,
    dimension: int = 16,
    noise_shares: Sequence[float] | None = None,
    shared_noise: bool = True,
    at_optimum: bool = False,
) -> ConvexProblem:
    """A federation drawn from a seed; the number of weights is the number of widths.

    With `non_iid` = 0 every device holds the same samples. Otherwise features and true model of a
    device are the common ones plus `non_iid` times its own. Device k has the sampling variance
    2 k delta / (K + 1), counted from 1. Without `noise_shares` the noise is isotropic.
    """
    widths = tuple((i + 1) / len(weights) for i in range(len(weights)))
    if len(widths) > dimension:
        raise RequestError(
            f"{dimension} coordinates cannot be divided into {len(widths)} segments; use fewer"
        )
    ends = np.array([round(dimension * width) for width in widths])
    of = np.searchsorted(ends, np.arange(dimension), side="right").astype(np.uint8)
    segments = Segments(of, widths)
    shares = segments.sizes / dimension if noise_shares is None else np.asarray(noise_shares)
    common = generator(seed, "convex-common")
    common_features = common.standard_normal((SAMPLES, dimension))
    common_model = common.standard_normal(dimension) / np.sqrt(dimension)
    features, targets = [], []
    for device in range(devices):
        own = generator(seed, "convex-device", device=device)
        mixed = common_features + non_iid * own.standard_normal((SAMPLES, dimension))
        mixed /= np.sqrt(1 + non_iid**2)
        model = common_model + non_iid * own.standard_normal(dimension) / np.sqrt(dimension)
        features.append(mixed)
        targets.append(mixed @ model)
    return ConvexProblem(
        np.array(features),
        np.array(targets),
        segments,
        tuple(weights),
        2 * delta * np.arange(1, devices + 1) / (devices + 1),
        tuple(shares.tolist()),
        shared_noise,
        at_optimum,
    )


def aggregation_weights(
    decoded: NDArray[np.uint8], probabilities: Floats, aggregation: Aggregation
) -> Floats:
    """The weight of every device in every segment, R x K x S, from the decoded messages (R x K).

    For a segment that no device delivered, all weights are zero, so the server keeps its last
    value.
    """
    arrived = decoded[..., None] > np.arange(len(probabilities))
    counts = arrived.sum(1, keepdims=True)
    expected = decoded.shape[1] * probabilities
    return np.asarray(arrived / (np.maximum(counts, 1) if aggregation == "delivered" else expected))


def noisy_gradients(problem: ConvexProblem, models: Floats, seed: int, round: int) -> Floats:
    """g^k of every device in a round, R x K x d, for R parallel repetitions."""
    shape = (len(models), *problem.noise_deviations.shape)
    noise = generator(seed, "convex-noise", round).standard_normal(shape)
    noise *= problem.noise_deviations
    noise += problem.gradients(models)
    return noise


def measure_gap(
    problem: ConvexProblem,
    channel: OutageLink,
    signal: Coding,
    rounds: Sequence[int],
    repetitions: int = 100,
    seed: int = 0,
    aggregation: Aggregation = "delivered",
) -> Floats:
    """F(theta_t) - F* at the given t in every repetition, with theorem 1's learning rate.

    t = 1 is before the first round. Repetition r is a separate federation: its devices have the
    gains of the channel's devices r K to r K + K - 1, and its result does not depend on the number
    of repetitions. One row per repetition.
    """
    devices, of = problem.devices, problem.segments.segment_of
    probabilities = channel.decoding_probabilities(signal)
    models = np.tile(problem.start, (repetitions, 1))
    wanted = {t: column for column, t in enumerate(rounds)}
    gaps = np.empty((repetitions, len(rounds)))
    every = np.arange(1, max(rounds) + 1)
    steps = learning_rate(every, problem.smoothness, problem.strong_convexity)
    for t, step in enumerate(steps.tolist(), start=1):
        if t in wanted:
            gaps[:, wanted[t]] = problem.gap(models)
        gains = channel.gains(seed, t, repetitions * devices).reshape(repetitions, devices)
        share = aggregation_weights(channel.decoded(signal, gains), probabilities, aggregation)
        share = share[..., of]
        update = (share * noisy_gradients(problem, models, seed, t)).sum(1)
        if aggregation == "literal":
            models = models * share.sum(1)
        models = models - step * update
    return gaps
