"""Differential privacy of each device's contribution, for every engine: two stages.

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

A round whose checkpoint is lost is run again with new noise: its result is then released twice, and
both count. `releases.jsonl` has one line for each result with secret noise, written and synced
before the result leaves the process, so the count is never too small, even after a kill. An
incomplete last line belongs to a result that was never released.
"""

import json
import logging
import math
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy
from numpy.typing import NDArray

from slimfl.experiment import DataSection, PrivacySection
from slimfl.files import append_whole, plain_descriptor
from slimfl.methods import RunningMean, State
from slimfl.nn import Vector
from slimfl.rng import generator
from slimfl.round.stages import Places, Stage
from slimfl.round.uploads import Plan, Upload
from slimfl.runs.storage.record import PrivacySpent

log = logging.getLogger(__name__)

#: Keeps a clipped change below C by more than the rounding error of a norm.
MARGIN = 1e-12

#: The log of releases in a run folder.
RELEASES = "releases.jsonl"

#: Number of secret values generated at a time; bounds the memory for large models.
CHUNK = 1 << 20


class Clip(Stage):
    """Clips what arrives of an update to a norm.

    A device that delivers nothing usable counts as one that changes nothing, so that the divisor of
    a sum does not depend on what devices do. It counts in what the seed lets through; if it
    measures its own gain, or the channel looks at the payload, in everything that was asked for.
    """

    def __init__(self, norm: float, places: Places) -> None:
        self.norm, self.places = norm, places

    def decode_all(self, uploads: Sequence[Upload], plan: Plan) -> None:
        """The device's clipped contribution to everything that it counts in."""
        for upload in uploads:
            decoded = len(upload.signal.messages)
            if plan.receptions is not None:
                decoded = int(plan.receptions.decoded[upload.row])
            came, upload.weight = upload.where is not None, 1.0
            upload.parameters = self._clipped(upload, plan.model) if came else plan.model
            upload.where = None
            if decoded:
                counted = upload.signal.segments_decoded(decoded)
                upload.where = self.places(counted, upload.work.channels)

    def _clipped(self, upload: Upload, model: Vector) -> Vector:
        assert upload.parameters is not None
        where = upload.where
        last, parameters = model[where], upload.parameters[where]
        change = parameters.astype(np.float64) - last
        norm = float(np.linalg.norm(change))
        clipped = model.copy()
        if norm <= self.norm:
            clipped[where] = parameters
        else:
            change *= self.norm / norm * (1 - MARGIN)
            clipped[where] = _moved(last, change)
        return clipped


class Privacy(Stage):
    """Adds noise to what is merged and counts each device's privacy loss; behind a `Clip`."""

    def __init__(self, section: PrivacySection, devices: int, seed: int) -> None:
        assert section.clip_norm is not None
        self.section, self.seed = section, seed
        self.deviation = section.noise_multiplier * section.clip_norm
        self.secret = section.noise == "secret" and section.noise_multiplier > 0
        self.heard = np.zeros(devices, np.int64)
        """Number of results that each device counts in."""
        self.released = 0
        """Number of results with secret noise, repeated rounds included."""
        self._releases: Releases | None = None
        self._plan: Plan | None = None
        self._this_round: list[int] = []

    def begin(self, data: DataSection, folder: Path | None) -> None:
        """Before the first round: warn of what is not covered, and count past releases.

        With a folder, results are recorded there, and those that a checkpoint does not know of are
        added to its count.
        """
        if self.deviation > 0 and data.normalise == "standard" and data.partition != "own":
            log.warning(
                'data.normalise = "standard" takes mean and deviation of the images from all '
                "devices' data, without noise; epsilon does not cover that. Leave it out for "
                "constants that depend on no data"
            )
        if folder is not None and self.secret:
            self._releases, known = Releases(folder, len(self.heard)), self.released
            for number, devices in self._releases.read():
                if number > known:
                    np.add.at(self.heard, devices, 1)
                self.released = max(self.released, number)

    def state(self) -> State:
        """What a checkpoint stores."""
        return {"heard": self.heard.copy(), "released": np.array(self.released, np.int64)}

    def restore(self, state: State) -> None:
        """Restore what `state` returned."""
        heard = np.array(state["heard"])
        if heard.shape != self.heard.shape:
            raise ValueError("it counts other devices")
        self.heard, self.released = heard, int(state["released"])

    def decode_all(self, uploads: Sequence[Upload], plan: Plan) -> None:
        """Note who counts in this round's result; a round abandoned before that does not count."""
        if plan is not self._plan:
            self._plan, self._this_round = plan, []
        self._this_round += [upload.device for upload in uploads if upload.where is not None]

    def finish(self, mean: RunningMean, plan: Plan) -> None:
        """Add noise to every parameter that was delivered.

        The noise is added to the exact sum, so that the model is rounded only once, afterwards.
        """
        self._count(plan)
        if self.deviation > 0:
            where = np.flatnonzero(mean.weights())
            seeded = generator(self.seed, "privacy", plan.round).standard_normal
            draw = secret_gaussian if self.secret else seeded
            mean.sums[where] += self.deviation * draw(len(where))

    def _count(self, plan: Plan) -> None:
        """Count the round's devices, on disk before the result exists."""
        devices = self._this_round if plan is self._plan else []
        self._plan, self._this_round = None, []
        if not devices:
            return
        if self.secret:
            if self._releases is not None:
                self._releases.append(self.released + 1, plan.round, devices)
            self.released += 1
        np.add.at(self.heard, devices, 1)

    def spent(self) -> PrivacySpent:
        """Epsilon of the device that counts in the most results; None if there is no bound."""
        results, noise, delta = (
            int(self.heard.max()),
            self.section.noise_multiplier,
            self.section.delta,
        )
        epsilon: float | None = 0.0
        if results:
            epsilon = gaussian_epsilon(math.sqrt(results) / noise, delta) if noise else None
        return PrivacySpent(epsilon=epsilon, delta=delta)


class Releases:
    """The append-only log of releases in a run folder."""

    def __init__(self, folder: Path, devices: int) -> None:
        self.path, self.devices = folder / RELEASES, devices

    def read(self) -> list[tuple[int, list[int]]]:
        """All releases, with their devices; cuts off an incomplete last line.

        They are numbered from 1 over the whole life of a run, repeated rounds included.
        """
        try:
            descriptor = plain_descriptor(self.path, os.O_RDWR)
        except FileNotFoundError:
            return []
        found: list[tuple[int, list[int]]] = []
        with os.fdopen(descriptor, "rb+") as file:
            whole = 0
            for raw in file:
                if not raw.endswith(b"\n"):
                    file.truncate(whole)
                    os.fsync(file.fileno())
                    break
                whole += len(raw)
                found.append(self._parsed(raw, found[-1][0] + 1 if found else 1))
        return found

    def _parsed(self, raw: bytes, expected: int) -> tuple[int, list[int]]:
        """A line; one that is damaged is counted as if every device had been decoded."""
        try:
            values = json.loads(raw)
            number, devices = values["release"], values["heard"]
            if all(type(n) is int and n >= 0 for n in (number, values["round"], *devices)) and all(
                device < self.devices for device in devices
            ):
                return number, devices
        except (ValueError, TypeError, KeyError, RecursionError):
            pass
        words = "release %d in %s is damaged; it is counted as if every device had been decoded"
        log.warning(words, expected, self.path)
        return expected, list(range(self.devices))

    def append(self, number: int, round: int, devices: Sequence[int]) -> None:
        """Add a release, whole or not at all; it is on the disk when this returns."""
        line = {"release": number, "round": round, "heard": list(devices)}
        append_whole(self.path, json.dumps(line).encode() + b"\n")


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
    below = scipy.special.log_ndtr(mu / 2 - epsilon / mu)
    above = epsilon + scipy.special.log_ndtr(-mu / 2 - epsilon / mu)
    return float(np.exp(below) * -np.expm1(above - below))


def secret_gaussian(count: int) -> NDArray[np.float64]:
    """Independent standard normal values from the system's cryptographic generator.

    NumPy's generators are fast but predictable: enough of their output reveals the rest, and with
    it the noise that should hide a device. Here every value is made from 64 fresh bits of
    `os.urandom`: one for the sign, 52 for the distance from zero, by the inverse of the normal
    distribution.
    """
    noise = np.empty(count)
    for start in range(0, count, CHUNK):
        part = noise[start : start + CHUNK]
        part[:] = gaussian_of(np.frombuffer(os.urandom(8 * len(part)), np.uint64))
    return noise


def gaussian_of(bits: NDArray[np.uint64]) -> NDArray[np.float64]:
    """One standard normal value per 64 bits.

    The distance comes from a probability in (0, 1/2), where floating point resolves the tail to 8.2
    deviations; one in (0, 1) would sometimes round to 1, which maps to infinity.
    """
    probability = ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-53
    sign = np.where(bits & np.uint64(1), 1.0, -1.0)
    return np.asarray(sign * scipy.special.ndtri(probability))
