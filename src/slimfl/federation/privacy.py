"""Differential privacy of a device's contribution, on the way of every update, in every engine.

What arrives of a device's update, w_k - w over the delivered segments, is shortened to the norm C.
The sum of a segment's updates then gets Gaussian noise of deviation z C, whatever the number n_s of
devices that delivered the segment, so its average gets z C / n_s. (Flower's fixed clipping divides
by the number of sampled devices. With segments that would be too little noise wherever fewer
devices delivered, which is why the mechanism is its own here.)

Two federations are neighbours if one device's contributions are replaced by nothing. Who took part
and what arrived are functions of the seed and not of the data; they are public, so n_s is, and
neither sampling nor a lossy channel adds to the privacy. All segments together are one Gaussian
mechanism of sensitivity C. A device that was heard in m rounds meets m of them, which compose to
exactly one with mu = sqrt(m) / z (Dong, Roth and Su 2022), for which epsilon is exact (Balle and
Wang 2018):

    delta = Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu).

Reported is the epsilon of the device that was heard most often.
"""

import math
from collections.abc import Iterable

import numpy as np

from slimfl.config import PrivacySection
from slimfl.federation.merge import RefusedUpdateError, SegmentAverage, check_update
from slimfl.nn import Vector
from slimfl.rng import generator


class Privacy:
    """Clips what arrives, adds noise to what is merged, and counts what each device has spent."""

    def __init__(self, section: PrivacySection, devices: int, seed: int) -> None:
        assert section.clip_norm is not None
        self.section, self.seed = section, seed
        self.clip_norm = section.clip_norm
        self.heard = np.zeros(devices, np.int64)
        """In how many rounds each device was heard."""

    def add(
        self, average: SegmentAverage, parameters: Vector, delivered: Iterable[int], device: int
    ) -> None:
        """Put a clipped update into the average.

        A bad update counts as one that changes nothing, so that n_s does not depend on what a
        device holds; `RefusedUpdateError` is raised all the same.
        """
        segments = list(delivered)
        self.heard[device] += 1
        try:
            check_update(parameters, len(average.last))
        except RefusedUpdateError:
            average.add(average.last, segments)
            raise
        average.add(self._clipped(average, parameters, segments), segments)

    def _clipped(self, average: SegmentAverage, parameters: Vector, delivered: list[int]) -> Vector:
        where = np.concatenate([average.segments.positions[s] for s in delivered])
        change = parameters[where].astype(np.float64) - average.last[where]
        change *= min(1.0, self.clip_norm / max(float(np.linalg.norm(change)), 1e-300))
        clipped = average.last.copy()
        clipped[where] = (average.last[where] + change).astype(np.float32)
        return clipped

    def result(self, average: SegmentAverage, round: int) -> Vector:
        """The new global model: the average with noise in every segment that was delivered."""
        model = average.result()
        deviation = self.section.noise_multiplier * self.clip_norm
        if deviation == 0:
            return model
        seeded = self.section.noise == "seeded"
        random = generator(self.seed, "privacy", round) if seeded else np.random.default_rng()
        for segment, count in enumerate(average.weights):
            if count > 0:
                where = average.segments.positions[segment]
                noise = random.normal(0.0, deviation / count, len(where))
                model[where] = (model[where] + noise).astype(np.float32)
        return model

    def spent(self) -> dict[str, float | None]:
        """The worst device's epsilon so far, None where there is no bound."""
        return {"epsilon": self.epsilon(), "delta": self.section.delta}

    def epsilon(self) -> float | None:
        """Epsilon of the device that was heard most often."""
        rounds, noise = int(self.heard.max()), self.section.noise_multiplier
        if rounds == 0:
            return 0.0
        return (
            None if noise == 0 else gaussian_epsilon(math.sqrt(rounds) / noise, self.section.delta)
        )


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The smallest epsilon of a Gaussian mechanism with sensitivity mu and unit noise.

    >>> round(gaussian_epsilon(1.0, 1e-5), 3)
    4.377
    """
    low, high = 0.0, 1.0
    while gaussian_delta(high, mu) > delta:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        if gaussian_delta(middle, mu) > delta:
            low = middle
        else:
            high = middle
    return high


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The delta that goes with an epsilon; the logarithms keep large values from overflowing."""
    from scipy.special import log_ndtr

    below = log_ndtr(mu / 2 - epsilon / mu)
    above = epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    return float(np.exp(below) * -np.expm1(above - below))
