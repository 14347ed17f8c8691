"""The torch engine: any network of slimmable layers, on a CPU or a GPU.

On a CPU, devices train in parallel, one per core: that uses the cores better than splitting every
small convolution over all of them, and the results do not depend on the number of cores. If steps
are small, and on a GPU, devices with equal schedules train as one cohort.
"""

import copy
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from queue import SimpleQueue
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from slimfl.engines.base import Score, Task, Update, Workload
from slimfl.engines.device_states import DeviceStates
from slimfl.engines.machine import available_cores, tune_allocator
from slimfl.nn import (
    ChannelOrder,
    FlatOrders,
    Vector,
    at_width,
    multiply_adds,
    put_back,
    statistics,
)
from slimfl.training import (
    STEPS,
    CohortTrainer,
    Images,
    LocalSchedule,
    LocalTrainer,
    OptimiserState,
    cohort_key,
    is_random,
)

#: Larger batches exceed the cache and are no faster.
EVALUATION_BATCH = 200

#: Devices per thread and wave: enough to balance their sizes, few enough to keep in memory.
WAVE = 16

#: Multiply-adds of a step below which calling operations takes longer than computing them:
#: `python -m benchmarks.cohorts` measures up to where cohorts pay on a CPU.
SMALL_STEP = 3_000_000

#: Waves of cohorts have this many times as many devices as other waves.
COHORT = 16


class TorchEngine:
    """Keeps a few networks in memory; parameters are copied in, trained, and copied out."""

    name = "torch"

    def __init__(self, workload: Workload, network: nn.Module, device: str = "cpu") -> None:
        tune_allocator()
        experiment = workload.experiment
        self.threads = experiment.threads or available_cores()
        self.workload = workload
        self.orders = FlatOrders(network)
        self.widths = experiment.model.widths
        # dropout layers share one random generator, so such devices train one after the other
        self.workers = self.threads if device == "cpu" and not is_random(network) else 1
        self.cohort = CohortTrainer(
            copy.deepcopy(network).to(device), self.widths, experiment.training
        )
        small = device != "cpu" or self._step_size(network) < SMALL_STEP
        # cohorts cannot keep each device's batch statistics apart
        self.cohorts_pay = small and not is_random(network) and not statistics(network)
        self.trainers: SimpleQueue[LocalTrainer] = SimpleQueue()
        for _ in range(self.workers):
            own = copy.deepcopy(network).to(device)
            self.trainers.put(LocalTrainer(own, self.widths, experiment.training))
        mean, deviation = workload.dataset.normalisation(experiment.data.normalise)
        self.training_images = Images(workload.dataset.train, mean, deviation, device)
        self.test_images = Images(workload.dataset.test, mean, deviation, device)
        self.states = DeviceStates(keep=experiment.training.optimiser_state == "kept")

    def train(self, round: int, start: Vector, tasks: Sequence[Task]) -> Iterator[Update]:
        """Train devices; those with a channel order on a network in that order."""
        for order, alike in groupby(tasks, key=lambda task: task.work.channels):
            if order is None:
                yield from self._train(round, start, list(alike))
            else:
                yield from self._train_in_order(order, round, start, list(alike))

    def _train_in_order(
        self, order: ChannelOrder, round: int, start: Vector, tasks: Sequence[Task]
    ) -> Iterator[Update]:
        """The states of devices are stored in the model's own order."""
        places = self.orders.of(order)
        for task in tasks:
            self._reorder_state(task.device, lambda values: values[places])
        for update in self._train(round, start[places], tasks):
            self._reorder_state(update.device, lambda values: put_back(values, places))
            yield replace(update, parameters=put_back(update.parameters, places))

    def _reorder_state(self, device: int, reorder: Callable[[NDArray[Any]], NDArray[Any]]) -> None:
        state = self.states.get(device)
        if state:
            moved: OptimiserState = {
                name: reorder(values) if values.ndim else values for name, values in state.items()
            }
            self.states.put(device, moved)

    def _train(self, round: int, start: Vector, tasks: Sequence[Task]) -> Iterator[Update]:
        """Train devices in waves, as cohorts or in parallel."""
        wave_length = WAVE * (COHORT if self.cohorts_pay else self.workers)
        with self._pool() as pool:
            for begin in range(0, len(tasks), wave_length):
                wave = tasks[begin : begin + wave_length]
                made = self.workload.schedules(round, wave)
                schedules = {task.device: one for task, one in zip(wave, made, strict=True)}
                if self.cohorts_pay:
                    yield from self._train_cohorts(start, schedules)
                else:
                    yield from self._train_side_by_side(pool, start, schedules)

    def _train_side_by_side(
        self, pool: ThreadPoolExecutor, start: Vector, schedules: dict[int, LocalSchedule]
    ) -> Iterator[Update]:
        """One device per thread, the one with the most samples first."""
        largest_first = sorted(schedules, key=lambda device: -len(schedules[device].samples))
        futures = {
            device: pool.submit(self._train_one, start, device, schedules[device])
            for device in largest_first
        }
        for device in schedules:
            yield futures.pop(device).result()

    def _train_one(self, start: Vector, device: int, schedule: LocalSchedule) -> Update:
        trainer = self.trainers.get()
        try:
            trainer.network.train()
            result = trainer.train(start, schedule, self.training_images, self.states.get(device))
        finally:
            self.trainers.put(trainer)
        return self._update(device, schedule, *result)

    def _train_cohorts(
        self, start: Vector, schedules: dict[int, LocalSchedule]
    ) -> Iterator[Update]:
        """Devices whose schedules have the same shape, all at once."""
        alike: dict[Hashable, list[int]] = {}
        for device, schedule in schedules.items():
            alike.setdefault(cohort_key(schedule, self.states.get(device)), []).append(device)
        updates: dict[int, Update] = {}
        for devices in alike.values():
            if schedules[devices[0]].step not in STEPS:
                # only for built-in steps do we know that no device affects another one's part of
                # the batch
                updates |= {k: self._train_one(start, k, schedules[k]) for k in devices}
                continue
            results = self.cohort.train(
                start,
                [schedules[device] for device in devices],
                self.training_images,
                [self.states.get(device) for device in devices],
            )
            for device, result in zip(devices, results, strict=True):
                updates[device] = self._update(device, schedules[device], *result)
        for device in schedules:
            yield updates.pop(device)

    def _update(
        self,
        device: int,
        schedule: LocalSchedule,
        parameters: Vector,
        state: OptimiserState,
        losses: NDArray[np.float64],
    ) -> Update:
        self.states.put(device, state)
        held = int(self.workload.partition.sizes[device])
        return Update(device, parameters, held, losses, schedule.images_seen)

    def _step_size(self, network: nn.Module) -> int:
        """Multiply-adds of one batch at full width."""
        rows, columns, channels = self.workload.dataset.train.images.shape[1:]
        per_image = multiply_adds(network, 1.0, (channels, rows, columns))
        return per_image * self.workload.experiment.training.batch_size

    def evaluate(
        self, parameters: Vector, widths: Sequence[int], *, by_label: bool = False
    ) -> list[Score]:
        """Score the widths, with batches in parallel."""
        count = len(self.test_images.labels)
        starts = range(0, count, EVALUATION_BATCH)
        with self._pool() as pool:
            parts = list(pool.map(lambda s: self._evaluate_one(parameters, widths, s), starts))
        correct, loss, *labels = torch.stack(parts).sum(0).tolist()
        each = [tuple(map(int, found)) if by_label else None for found in zip(*labels, strict=True)]
        return [
            Score(right / count, total / count, found)
            for right, total, found in zip(correct, loss, each, strict=True)
        ]

    @torch.no_grad()
    def _evaluate_one(self, parameters: Vector, widths: Sequence[int], start: int) -> Tensor:
        """Correct answers, summed loss and correct answers per label, by width, of one batch."""
        trainer = self.trainers.get()
        try:
            trainer.network.eval()
            trainer.flat.values.data.copy_(torch.from_numpy(parameters))
            images, labels = self.test_images.batch(slice(start, start + EVALUATION_BATCH))
            classes = self.workload.dataset.classes
            result = torch.zeros(2 + classes, len(widths), dtype=torch.float64)
            for row, index in enumerate(widths):
                with at_width(self.widths[index]):
                    logits = trainer.network(images)
                right = logits.argmax(1) == labels
                result[0, row] = right.sum()
                result[2:, row] = torch.bincount(labels[right], minlength=classes)[:classes]
                result[1, row] = nn.functional.cross_entropy(logits, labels, reduction="sum")
        finally:
            self.trainers.put(trainer)
        return result

    @contextmanager
    def _pool(self) -> Iterator[ThreadPoolExecutor]:
        """Threads that compute on one core each; restores torch's own threads afterwards."""
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        pool = ThreadPoolExecutor(self.workers, initializer=torch.set_num_threads, initargs=(1,))
        try:
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)
            torch.set_num_threads(before)
