"""The interface of engines: the arithmetic of a round, and nothing else.

An engine knows the data, the network and how devices train. It does not know which method runs or
what the radio does with the updates.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from slimfl.data import Dataset, Partition
from slimfl.engines.device_states import DeviceStates
from slimfl.experiment import Experiment
from slimfl.nn import Vector
from slimfl.rng import generators
from slimfl.training import LocalSchedule, Work, local_schedule


@dataclass(frozen=True)
class Task:
    """One device that trains in a round."""

    device: int
    work: Work


@dataclass(frozen=True, eq=False)
class Update:
    """The result of a device's local training."""

    device: int
    parameters: Vector
    samples: int
    """Number of samples that the device holds."""
    losses: NDArray[np.float64]
    """Mean training loss per width; NaN if a width took no part."""
    images_seen: NDArray[np.int64]
    """Number of images per width; an image counts each time it was used."""
    gain: float | None = None
    """The power gain to the server, if the device measured it."""


@dataclass(frozen=True)
class Missing:
    """A device that was asked and delivered nothing usable."""

    device: int
    reason: str


#: The result of a task.
Outcome = Update | Missing


@dataclass(frozen=True)
class Score:
    """The test result of a width."""

    accuracy: float
    loss: float
    correct_by_label: tuple[int, ...] | None = None
    """Number of correctly classified test images per label, if that was requested."""


class Engine(Protocol):
    """The arithmetic of a federation."""

    name: str
    threads: int
    states: DeviceStates
    """Optimiser states that devices keep between rounds."""

    def train(self, round: int, start: Vector, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """Train the devices from `start`; yields outcomes in the order of the tasks.

        An engine may work on several devices at once, but never holds more than a bounded number
        of updates, so memory does not grow with the number of devices.
        """

    def evaluate(
        self, parameters: Vector, widths: Sequence[int], *, by_label: bool = False
    ) -> list[Score]:
        """Score the given widths on the test set, optionally per label."""


@dataclass(frozen=True, eq=False)
class Workload:
    """What every engine is built from: the experiment and the data it runs on."""

    experiment: Experiment
    dataset: Dataset
    partition: Partition

    def schedules(self, round: int, tasks: Sequence[Task]) -> list[LocalSchedule]:
        """The batches, widths and learning rates of devices in a round."""
        experiment, devices = self.experiment, [task.device for task in tasks]
        randoms = generators(experiment.seed, "batches", round, devices)
        return [
            local_schedule(
                experiment.training,
                task.work,
                self.partition.of(task.device),
                width_count=len(experiment.model.widths),
                rounds=experiment.rounds,
                seed=experiment.seed,
                round=round,
                device=task.device,
                random=random,
            )
            for task, random in zip(tasks, randoms, strict=True)
        ]
