"""What an engine is: who does the arithmetic of a round, and nothing else.

An engine knows the data, the network and how devices train. It does not know which method runs or
what the radio does with the updates.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from slimfl.config import Experiment
from slimfl.data import Dataset, Partition
from slimfl.engines.device_states import DeviceStates
from slimfl.nn import Vector
from slimfl.rng import generators
from slimfl.training import LocalSchedule, LocalWork, local_schedule


@dataclass(frozen=True)
class Task:
    """One device that trains in a round."""

    device: int
    work: LocalWork


@dataclass(frozen=True, eq=False)
class Update:
    """What a device has after its local training."""

    device: int
    parameters: Vector
    samples: int
    """How many it holds."""
    losses: NDArray[np.float64]
    """Mean training loss of every width; NaN where a width took no part."""
    images_seen: NDArray[np.int64]
    """How many images every width was trained on; an image counts each time it was taken."""
    gain: float | None = None
    """The power gain that the device measured on its way to the server, if it did."""


@dataclass(frozen=True)
class Missing:
    """A device that was asked and from which nothing usable came."""

    device: int
    reason: str


#: What comes of a task.
Outcome = Update | Missing


@dataclass(frozen=True)
class Score:
    """A width on the test set."""

    accuracy: float
    loss: float
    correct_by_label: tuple[int, ...] | None = None
    """How many test images of every label were recognised, where that was asked for."""


class Engine(Protocol):
    """The arithmetic of a federation."""

    name: str
    threads: int
    states: DeviceStates
    """What devices keep between rounds."""

    def supports(self, work: LocalWork) -> str | None:
        """Why this engine cannot do some work; None if it can."""

    def train(self, round: int, start: Vector, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """Train the devices from `start`; outcomes come in the order of the tasks.

        An engine may work on several devices at once, but never holds more than a bounded number
        of updates, so memory does not grow with the number of devices.
        """

    def evaluate(
        self, parameters: Vector, widths: Sequence[int], *, by_label: bool = False
    ) -> list[Score]:
        """Score the given widths on the test set, on request also label by label."""

    def device_states(self) -> dict[str, NDArray[np.float32]]:
        """All that devices keep between rounds, as arrays."""

    def restore_device_states(self, states: dict[str, NDArray[np.float32]]) -> None:
        """Take back what `device_states` gave."""


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
