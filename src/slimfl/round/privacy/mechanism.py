"""Differential privacy of each device's contribution, for every engine.

What arrives of a device's update, w_k - w over the delivered segments, is clipped to the norm C.
The sum of a segment's updates then gets Gaussian noise of deviation z C and is divided by n_s, the
number of devices whose segment the channel lets through. (Flower's fixed clipping divides by the
number of sampled devices. With segments, that would be too little noise wherever fewer devices
delivered, so slimfl has its own mechanism.)

Two federations are neighbours if one device's contributions are replaced by nothing. n_s must be
the same for both, so it does not depend on who answered: a device that is late, fails or sends a
bad update counts as one that changes nothing. Who is asked and what the channel lets through are
functions of the seed and not of the data. They are public, and so is n_s; hence neither sampling
nor a lossy channel adds to the privacy. If devices report their own gains, only the device
determines what the channel lets through, and n_s is the number of devices that were asked.

All segments together are one Gaussian mechanism of sensitivity C. A device that counts in m results
is exposed to m of them, which compose to exactly one with mu = sqrt(m) / z (Dong, Roth and Su
2022), for which epsilon is exact (Balle and Wang 2018):

    delta = Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu).

The reported epsilon is that of the device that counts in the most results. A round that is run
again with new secret noise is one more result; with seeded noise it is the same one.
"""

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimfl.experiment import DataSection, PrivacySection
from slimfl.methods import Arrival, RunningMean
from slimfl.nn import Vector
from slimfl.rng import generator
from slimfl.round.filters import Filter, Passage
from slimfl.round.privacy.releases import Release, Releases, heard_after
from slimfl.round.privacy.secret_noise import secret_gaussian
from slimfl.runs.storage.record import PrivacySpent

log = logging.getLogger(__name__)

#: Keeps a clipped change below C by more than the rounding error of a norm.
MARGIN = 1e-12


class Clip(Filter):
    """Clips what arrives of an update to a norm.

    A device that delivers nothing usable counts as one that changes nothing, so that the divisor of
    a sum does not depend on what devices do.
    """

    def __init__(self, norm: float) -> None:
        self.norm = norm
        self._last: Vector = np.zeros(0, np.float32)

    def begin(self, round: int, model: Vector) -> None:
        """Changes are measured from the model that the round starts from."""
        self._last = model

    def on_passage(self, passage: Passage) -> Passage:
        """The device's clipped contribution to everything that it counts in."""
        if passage.counted is None:
            return replace(passage, arrival=None)
        parameters = self._last
        if passage.arrival is not None:
            parameters = self._clipped(passage.arrival)
        arrival = Arrival(passage.device, parameters, passage.counted, weight=1.0)
        return replace(passage, arrival=arrival)

    def _clipped(self, arrival: Arrival) -> Vector:
        where = arrival.where
        last, parameters = self._last[where], arrival.parameters[where]
        change = parameters.astype(np.float64) - last
        norm = float(np.linalg.norm(change))
        clipped = self._last.copy()
        if norm <= self.norm:
            clipped[where] = parameters
        else:
            change *= self.norm / norm * (1 - MARGIN)
            clipped[where] = _moved(last, change)
        return clipped


class Privacy(Filter):
    """Adds noise to what is merged and counts each device's privacy loss; comes after a `Clip`."""

    works_on_sums = True

    def __init__(self, section: PrivacySection, devices: int, seed: int) -> None:
        assert section.clip_norm is not None
        self.section, self.seed = section, seed
        self.clip_norm = section.clip_norm
        self.heard = np.zeros(devices, np.int64)
        """Number of results that each device counts in."""
        self.released = 0
        """Number of results with secret noise, repeated rounds included."""
        self._releases: Releases | None = None
        self._round = 0
        self._this_round: list[int] = []

    def start(self, data: DataSection, folder: Path | None) -> None:
        """Before the first round: warn of what is not covered, and count past releases.

        With a folder, results are recorded there, and those that a checkpoint does not know of are
        added to its count.
        """
        noisy = self.section.noise_multiplier > 0
        if noisy and data.normalise == "standard" and data.partition != "own":
            log.warning(
                'data.normalise = "standard" takes mean and deviation of the images from all '
                "devices' data, without noise; epsilon does not cover that. Leave it out for "
                "constants that depend on no data"
            )
        if folder is not None and self._secret:
            self._releases = Releases(folder, len(self.heard))
            past = self._releases.read()
            np.add.at(self.heard, list(heard_after(past, self.released)), 1)
            self.released = max([self.released, *(release.number for release in past)])

    @property
    def _secret(self) -> bool:
        return self.section.noise == "secret" and self.section.noise_multiplier > 0

    def state(self) -> dict[str, Any]:
        """What a checkpoint stores."""
        return {"heard": self.heard.tolist(), "released": self.released}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned; version 0.1 did not count results."""
        self.heard[:] = state["heard"]
        self.released = state.get("released", 0)

    def begin(self, round: int, model: Vector) -> None:
        """Begin a round; an earlier one that was abandoned before its result does not count."""
        self._round, self._this_round = round, []

    def on_passage(self, passage: Passage) -> Passage:
        """Note who counts in this round's result."""
        if passage.counted is not None:
            self._this_round.append(passage.device.id)
        return passage

    def on_sums(self, running: RunningMean) -> None:
        """Add noise to every parameter that was delivered.

        The noise is added to the exact sum, so that the model is rounded only once, afterwards.
        """
        self._count()
        deviation = self.section.noise_multiplier * self.clip_norm
        if deviation > 0:
            where = np.flatnonzero(running.weights())
            running.sums[where] += deviation * self._gaussian()(len(where))

    def _gaussian(self) -> Callable[[int], NDArray[np.float64]]:
        if self._secret:
            return secret_gaussian
        return generator(self.seed, "privacy", self._round).standard_normal

    def _count(self) -> None:
        """Count the round's devices, on disk before the result exists."""
        devices, self._this_round = self._this_round, []
        if not devices:
            return
        if self._secret:
            if self._releases is not None:
                self._releases.append(Release(self.released + 1, self._round, tuple(devices)))
            self.released += 1
        np.add.at(self.heard, devices, 1)

    def spent(self) -> PrivacySpent:
        """The worst device's epsilon so far; None if there is no bound."""
        return PrivacySpent(epsilon=self.epsilon(), delta=self.section.delta)

    def epsilon(self) -> float | None:
        """Epsilon of the device that counts in the most results."""
        results, noise = int(self.heard.max()), self.section.noise_multiplier
        if results == 0:
            return 0.0
        return (
            None if noise == 0 else gaussian_epsilon(math.sqrt(results) / noise, self.section.delta)
        )


def _moved(last: Vector, change: NDArray[np.float64]) -> Vector:
    """`last` plus a change, rounded so that no parameter moves further than the change.

    Rounding to the nearest float32 could lengthen the change beyond the norm, especially for large
    parameters and a small norm.
    """
    moved = (last + change).astype(np.float32)
    too_far = np.abs(moved.astype(np.float64) - last) > np.abs(change)
    moved[too_far] = np.nextafter(moved[too_far], last[too_far])
    return moved


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
    """The delta for an epsilon; the logarithms keep large values from overflowing."""
    from scipy.special import log_ndtr

    below = log_ndtr(mu / 2 - epsilon / mu)
    above = epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    return float(np.exp(below) * -np.expm1(above - below))
