"""The server's belief of mean gains: its update against quadrature, its limit against the truth."""

import numpy as np
import pytest
from scipy import integrate, optimize

from slimfl.radio import GainBelief, Signal, Superposition
from slimfl.radio.splits import _DB, PRIOR_DEVIATION_DB
from slimfl.rng import generator

RATES, SPLIT = (1.5, 1.5), (0.8, 0.2)
SENT = Signal(((0,), (1,)), Superposition(RATES, SPLIT), (100.0, 200.0))
THRESHOLDS = SENT.coding.thresholds(1.0)


def probability(decoded: int, ratio: float) -> float:
    """That exactly this number of messages is decoded, from exponential gains of mean 1."""
    edges = [0.0, *THRESHOLDS, np.inf]
    return float(np.exp(-edges[decoded] * ratio) - np.exp(-edges[decoded + 1] * ratio))


@pytest.mark.parametrize("decoded", [0, 1, 2])
def test_one_round_moves_the_belief_to_the_largest_posterior_density(decoded: int) -> None:
    belief = GainBelief(1, noise_to_power=0.05, drift_db=0.0)
    prior_mean, prior_variance = np.log(0.05), (PRIOR_DEVIATION_DB * _DB) ** 2

    def against(x: float) -> float:
        return -np.log(probability(decoded, np.exp(x))) + (x - prior_mean) ** 2 / (
            2 * prior_variance
        )

    best = optimize.minimize_scalar(against, bounds=(-12, 4), method="bounded",
                                    options={"xatol": 1e-10})  # fmt: skip
    belief.observe(np.array([0]), [SENT], [decoded])
    assert belief.mean[0] == pytest.approx(best.x, abs=1e-6)
    h = 1e-4
    curvature = (against(best.x + h) - 2 * against(best.x) + against(best.x - h)) / h**2
    assert belief.variance[0] == pytest.approx(1 / curvature, rel=1e-4)


def test_many_rounds_find_the_true_mean_gains() -> None:
    true = np.array([0.005, 0.05, 0.4])
    belief = GainBelief(3, noise_to_power=0.05, drift_db=0.0)
    gains = generator(3, "test").exponential(size=(3000, 3))
    for row in gains:
        decoded = [int((g >= THRESHOLDS * r).sum()) for g, r in zip(row, true, strict=True)]
        belief.observe(np.arange(3), [SENT] * 3, decoded)
    deviations = np.sqrt(belief.variance)
    assert (np.abs(belief.mean - np.log(true)) < 4 * deviations).all()
    assert (deviations < 0.3).all()


def test_the_posterior_mean_of_few_rounds_is_near_that_of_quadrature() -> None:
    seen = [0, 2, 1, 0, 2, 2, 1, 0, 1, 2]
    belief = GainBelief(1, noise_to_power=0.05, drift_db=0.0)
    for decoded in seen:
        belief.observe(np.array([0]), [SENT], [decoded])

    def posterior(x: float) -> float:
        prior = np.exp(-((x - np.log(0.05)) ** 2) / (2 * (PRIOR_DEVIATION_DB * _DB) ** 2))
        return float(prior * np.prod([probability(d, np.exp(x)) for d in seen]))

    mass, _ = integrate.quad(posterior, -8, 3)
    mean, _ = integrate.quad(lambda x: x * posterior(x) / mass, -8, 3)
    assert belief.mean[0] == pytest.approx(mean, abs=0.5 * np.sqrt(belief.variance[0]))


def test_with_drift_old_rounds_are_forgotten() -> None:
    resting, drifting = (GainBelief(1, 0.05, drift) for drift in (0.0, 1.0))
    for belief in (resting, drifting):
        for _ in range(200):
            belief.observe(np.array([0]), [SENT], [2])
        for _ in range(20):
            belief.observe(np.array([0]), [SENT], [0])
    assert drifting.mean[0] > resting.mean[0] + 1.0
    assert drifting.variance[0] > resting.variance[0]


def test_a_device_that_is_not_asked_keeps_its_mean() -> None:
    belief = GainBelief(3, 0.05, 0.5)
    belief.observe(np.array([1]), [SENT], [0])
    assert belief.mean[0] == belief.mean[2] == np.log(0.05)
    assert belief.mean[1] > np.log(0.05)
    belief.observe(np.array([], np.int64), [], [])
