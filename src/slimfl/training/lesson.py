"""What a device is asked to do in a round: which widths it trains, and the batches it takes.

A lesson is plain numbers, the same for every engine.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from slimfl.config import TrainingSection
from slimfl.rng import generator


@dataclass(frozen=True)
class Curriculum:
    """What a method wants trained: several widths by the configured algorithm, or one alone."""

    widths: tuple[int, ...]
    """Indices of the widths, ascending."""

    @property
    def one_width(self) -> bool:
        """Whether a single width is trained, on labels."""
        return len(self.widths) == 1


@dataclass(frozen=True, eq=False)
class Lesson:
    """One device's work in one round."""

    algorithm: str
    order: str
    weights: tuple[float, ...]
    """Loss weight of every width of the network."""
    samples: NDArray[np.int64]
    """The device's sample indices in the order in which it sees them."""
    batch_offsets: NDArray[np.int64]
    """Step s takes `samples[batch_offsets[s]:batch_offsets[s + 1]]`."""
    visits: NDArray[np.bool_]
    """[step, width]: the widths that take part in a step."""
    learning_rates: NDArray[np.float64]
    """One a step."""
    key: tuple[int, int, int] = (0, 0, 0)
    """(seed, round, device), for layers that are random themselves."""

    @property
    def steps(self) -> int:
        """How many batches the device takes."""
        return len(self.batch_offsets) - 1

    @property
    def images_seen(self) -> NDArray[np.int64]:
        """How many images every width is trained on; an image counts each time it is taken."""
        return np.asarray(np.diff(self.batch_offsets) @ self.visits)


def lesson(
    section: TrainingSection,
    curriculum: Curriculum,
    held: NDArray[np.int64],
    *,
    width_count: int,
    rounds: int,
    seed: int,
    round: int,
    device: int,
    random: np.random.Generator | None = None,
) -> Lesson:
    """The lesson of a device that holds these samples; a function of (seed, round, device).

    `random` is the device's generator for the batches, where the caller has it already.
    """
    random = random or generator(seed, "batches", round, device)
    samples, offsets = _batches(section, held, random)
    steps = len(offsets) - 1
    return Lesson(
        algorithm="one-width" if curriculum.one_width else section.algorithm,
        order=section.order,
        weights=section.weights or (1 / width_count,) * width_count,
        samples=samples,
        batch_offsets=offsets,
        visits=_visits(section, curriculum, width_count, steps, (seed, round, device)),
        learning_rates=learning_rates(section, rounds, round, steps),
        key=(seed, round, device),
    )


def _batches(
    section: TrainingSection, held: NDArray[np.int64], random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Whole epochs, each a new permutation whose last batch may be short; cut after `steps`."""
    epochs = -(-local_steps(section, len(held)) // _steps_per_epoch(section, len(held)))
    samples = np.concatenate([random.permutation(held) for _ in range(epochs)])
    offsets = _batch_offsets(len(held), section.batch_size, epochs, section.steps)
    return samples[: offsets[-1]], offsets


def local_steps(section: TrainingSection, held: int) -> int:
    """How many steps a device that holds this number of samples takes in a round."""
    return section.steps or (section.epochs or 1) * _steps_per_epoch(section, held)


def _steps_per_epoch(section: TrainingSection, held: int) -> int:
    return -(-held // section.batch_size)


@lru_cache(maxsize=1024)
def _batch_offsets(held: int, batch_size: int, epochs: int, steps: int | None) -> NDArray[np.int64]:
    """Shared by all devices that hold as many samples, so nobody may write to it."""
    ends = np.minimum(np.arange(batch_size, held + batch_size, batch_size), held)
    offsets = np.concatenate([[0], *(epoch * held + ends for epoch in range(epochs))])
    offsets = offsets.astype(np.int64)[: None if steps is None else steps + 1]
    offsets.flags.writeable = False
    return offsets


def _visits(
    section: TrainingSection,
    curriculum: Curriculum,
    width_count: int,
    steps: int,
    key: tuple[int, int, int],
) -> NDArray[np.bool_]:
    visits = _all_visits(curriculum.widths, width_count, steps)
    inner = list(curriculum.widths[1:-1])
    drop = len(curriculum.widths) - max(section.sampled_widths, 2)
    if section.algorithm == "ustrain" and inner and drop > 0:
        # the sandwich rule: the narrowest and the widest always, the others by lot
        seed, round, device = key
        random = generator(seed, "sandwich", round, device)
        left_out = random.random((steps, len(inner))).argsort(axis=1)[:, :drop]
        visits = visits.copy()
        np.put_along_axis(visits, np.asarray(inner)[left_out], False, axis=1)
    return visits


@lru_cache(maxsize=1024)
def _all_visits(widths: tuple[int, ...], width_count: int, steps: int) -> NDArray[np.bool_]:
    """Every width in every step; shared, like the offsets."""
    visits = np.zeros((steps, width_count), np.bool_)
    visits[:, list(widths)] = True
    visits.flags.writeable = False
    return visits


def learning_rates(
    section: TrainingSection, rounds: int, round: int, steps: int
) -> NDArray[np.float64]:
    """The learning rate of every step in a round (rounds count from 1).

    `theorem1` is 2 / (mu t + 2 L - mu), where t counts local steps from the first round on.
    """
    match section.schedule:
        case "constant":
            return np.full(steps, section.learning_rate)
        case "cosine":
            progress = (round - 1) / rounds
            return np.full(steps, section.learning_rate * 0.5 * (1 + np.cos(np.pi * progress)))
        case "theorem1":
            t = (round - 1) * steps + np.arange(1, steps + 1)
            mu = section.strong_convexity
            return 2 / (mu * t + 2 * section.smoothness - mu)
