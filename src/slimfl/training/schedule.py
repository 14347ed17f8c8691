"""The schedule of a device in a round: batches, widths and learning rate of every step.

A schedule is plain numbers, the same for every engine.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from slimfl.errors import RequestError
from slimfl.experiment import TrainingSection
from slimfl.experiment.naming import NO_OPTIONS, Options, as_options
from slimfl.rng import generator
from slimfl.training.steps import configured_step
from slimfl.training.work import Work


@dataclass(frozen=True, eq=False)
class LocalSchedule:
    """One device's work in one round."""

    step: str
    """Name of the local step, and its options."""
    options: Options
    weights: tuple[float, ...]
    """Loss weight of every width of the network."""
    samples: NDArray[np.int64]
    """The device's sample indices in training order."""
    batch_offsets: NDArray[np.int64]
    """Step s takes `samples[batch_offsets[s]:batch_offsets[s + 1]]`."""
    visits: NDArray[np.bool_]
    """[step, width]: the widths that take part in a step."""
    learning_rates: NDArray[np.float64]
    """One per step."""
    key: tuple[int, int, int] = (0, 0, 0)
    """(seed, round, device), for random layers such as dropout."""

    @property
    def steps(self) -> int:
        """Number of batches."""
        return len(self.batch_offsets) - 1

    @property
    def images_seen(self) -> NDArray[np.int64]:
        """Number of images per width; an image counts each time it is used."""
        return np.asarray(np.diff(self.batch_offsets) @ self.visits)


def local_schedule(
    section: TrainingSection,
    work: Work,
    held: NDArray[np.int64],
    *,
    width_count: int,
    rounds: int,
    seed: int,
    round: int,
    device: int,
    random: np.random.Generator | None = None,
) -> LocalSchedule:
    """The schedule of a device: a function of (seed, round, device) and of what it trains.

    Args:
        section: The experiment's training.
        work: What the device trains.
        held: [sample] the indices of its samples.
        width_count: Widths of the network.
        rounds: Of the experiment.
        seed: The experiment's.
        round: Counted from 1.
        device: Its number.
        random: The device's generator for the batches, if the caller already has it.
    """
    random = random or generator(seed, "batches", round, device)
    if work.effort != 1 and section.schedule == "theorem1":
        raise RequestError(
            'training.schedule = "theorem1" counts the same steps in every round, but a device '
            f"takes {work.effort:g} of them; choose another schedule"
        )
    offsets = _batch_offsets(section, len(held), work.effort)
    epochs = -(-int(offsets[-1]) // len(held))
    samples = np.concatenate([random.permutation(held) for _ in range(epochs)])[: offsets[-1]]
    count = len(offsets) - 1
    step, options = _step(section, work)
    return LocalSchedule(
        step=step,
        options=options,
        weights=work.weights or section.weights or (1 / width_count,) * width_count,
        samples=samples,
        batch_offsets=offsets,
        visits=_visits(section, work, width_count, count, (seed, round, device)),
        learning_rates=learning_rates(section, rounds, round, count),
        key=(seed, round, device),
    )


def planned_images(
    section: TrainingSection,
    work: Work,
    held: int,
    *,
    width_count: int,
    seed: int,
    round: int,
    device: int,
) -> NDArray[np.int64]:
    """`images_seen` of the schedule, without making the schedule.

    Args:
        section: The experiment's training.
        work: What the device trains.
        held: Number of its samples.
        width_count: Widths of the network.
        seed: The experiment's.
        round: Counted from 1.
        device: Its number.

    Returns:
        [width] images; one counts each time it is used.
    """
    offsets = _batch_offsets(section, held, work.effort)
    visits = _visits(section, work, width_count, len(offsets) - 1, (seed, round, device))
    return np.asarray(np.diff(offsets) @ visits)


def _step(section: TrainingSection, work: Work) -> tuple[str, Options]:
    if work.step == "one-width" and len(work.widths) != 1 and work.visit != "one":
        raise RequestError(
            f"the local step 'one-width' trains one width, but {len(work.widths)} are assigned"
        )
    if work.step is not None:
        return work.step, work.options
    if len(work.widths) == 1:
        return "one-width", NO_OPTIONS
    options = as_options(section.options) if section.options else NO_OPTIONS
    return configured_step(section), options


def local_steps(section: TrainingSection, held: int, effort: float = 1.0) -> int:
    """Number of steps per round of a device.

    Args:
        section: The experiment's training.
        held: Number of the device's samples.
        effort: The part of the configured steps that it takes; at least one step.
    """
    steps = section.steps or (section.epochs or 1) * _steps_per_epoch(section.batch_size, held)
    return steps if effort == 1 else max(1, round(effort * steps))


def _steps_per_epoch(batch_size: int, held: int) -> int:
    return -(-held // batch_size)


def _batch_offsets(section: TrainingSection, held: int, effort: float) -> NDArray[np.int64]:
    return _offsets(held, section.batch_size, local_steps(section, held, effort))


@lru_cache(maxsize=1024)
def _offsets(held: int, batch_size: int, steps: int) -> NDArray[np.int64]:
    """Whole epochs, whose last batch may be shorter, cut after the last step.

    Shared by all devices with the same number of samples, so it must not be changed.
    """
    epochs = -(-steps // _steps_per_epoch(batch_size, held))
    ends = np.minimum(np.arange(batch_size, held + batch_size, batch_size), held)
    offsets = np.concatenate([[0], *(epoch * held + ends for epoch in range(epochs))])
    offsets = offsets.astype(np.int64)[: steps + 1]
    offsets.flags.writeable = False
    return offsets


def _visits(
    section: TrainingSection,
    work: Work,
    width_count: int,
    steps: int,
    key: tuple[int, int, int],
) -> NDArray[np.bool_]:
    visits = _all_visits(work.widths, width_count, steps)
    if work.visit in ("one", "widest-and-one"):
        seed, round, device = key
        drawn = generator(seed, "width", round, device).integers(len(work.widths), size=steps)
        visits = np.zeros((steps, width_count), np.bool_)
        visits[np.arange(steps), np.asarray(work.widths)[drawn]] = True
        if work.visit == "widest-and-one":
            visits[:, work.widths[-1]] = True
        return visits
    inner = list(work.widths[1:-1])
    drop = len(work.widths) - max(section.sampled_widths, 2)
    sandwich = work.visit == "sandwich" or (work.step is None and section.algorithm == "ustrain")
    if sandwich and inner and drop > 0:
        # the sandwich rule: always the narrowest and the widest, others at random
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
    """[step] the learning rate in a round.

    `theorem1` is 2 / (mu t + 2 L - mu), where t counts local steps since the first round.

    Args:
        section: The experiment's training.
        rounds: Of the experiment.
        round: Counted from 1.
        steps: Local steps per round.
    """
    match section.schedule:
        case "constant":
            return np.full(steps, section.learning_rate)
        case "cosine":
            progress = min(
                (round - 1) / rounds, 1.0
            )  # a fast asynchronous device may begin more tasks
            return np.full(steps, section.learning_rate * 0.5 * (1 + np.cos(np.pi * progress)))
        case "theorem1":
            t = (round - 1) * steps + np.arange(1, steps + 1)
            mu = section.strong_convexity
            return 2 / (mu * t + 2 * section.smoothness - mu)


def first_learning_rate(section: TrainingSection, rounds: int, round: int, held: int) -> float:
    """The learning rate with which a device with this number of samples begins a round."""
    return float(learning_rates(section, rounds, round, local_steps(section, held))[0])
