"""The native engine: UL-MobileNet in C++, several times as fast as torch on a CPU.

What is not written in C++ is trained by the torch engine in the same round.
"""

import importlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from slimfl.data import Samples
from slimfl.engines.base import Score, Task, Update, Workload
from slimfl.engines.device_states import DeviceStates
from slimfl.engines.machine import available_cores
from slimfl.engines.torch_engine import TorchEngine
from slimfl.experiment.naming import NO_OPTIONS
from slimfl.nn import FlatOrders, ULMobileNet, Vector, put_back
from slimfl.training import LocalSchedule, OptimiserState, Work, configured_step

log = logging.getLogger(__name__)

#: Devices per thread and wave: enough to balance their sizes, few enough to keep in memory.
WAVE = 32


#: The local steps that are written in C++, with the module's names for algorithm and mode.
NATIVE_STEPS = {
    "sustrain": ("sustrain", "accumulate"),
    "slimtrain": ("slimtrain", "sequential"),
    "slimtrain-accumulate": ("slimtrain", "accumulate"),
    "ustrain": ("ustrain", "sequential"),
    "ustrain-accumulate": ("ustrain", "accumulate"),
}


def native_module() -> ModuleType | None:
    """The compiled module; None if the package was installed without a compiler."""
    try:
        return importlib.import_module("slimfl._native")
    except ImportError:
        return None


def why_not_native(network: nn.Module) -> str | None:
    """Why the native engine cannot train this network; None if it can."""
    if native_module() is None:
        return "it was not compiled when slimfl was installed (no C++ compiler was found)"
    if type(network) is not ULMobileNet:
        return f"it computes UL-MobileNet only, and the model is {type(network).__name__}"
    return None


class NativeEngine:
    """Trains devices in parallel on all cores, from one work queue and without Python's lock."""

    name = "native"

    def __init__(self, workload: Workload, network: ULMobileNet, simd: str = "auto") -> None:
        module = native_module()
        assert module is not None
        experiment = workload.experiment
        self.workload = workload
        self.plain_network = network
        self.orders = FlatOrders(network)
        self.threads = experiment.threads or available_cores()
        rows, columns = workload.dataset.train.images.shape[1:3]
        self.network = module.Network(
            network.in_channels,
            rows,
            columns,
            network.channels,
            network.classes,
            [network.active_channels(width) for width in experiment.model.widths],
            simd,
        )
        mean, deviation = workload.dataset.normalisation(experiment.data.normalise)
        self.normalisation = {"mean": mean, "std": deviation}
        self.states = DeviceStates(keep=experiment.training.optimiser_state == "kept")
        section = experiment.training
        self.optimiser: dict[str, Any] = {
            "optimiser": section.optimiser,
            "betas": section.betas,
            "momentum": section.momentum if section.optimiser == "sgd" else 0.0,
            "nesterov": section.nesterov and section.optimiser == "sgd",
            "weight_decay": section.weight_decay,
        }

        self._obstacle = lru_cache(256)(self.why_not)
        self._said = False

    def why_not(self, work: Work) -> str | None:
        """Why this work is left to the torch engine; None if it is written in C++."""
        asked = work.step or configured_step(self.workload.experiment.training)
        one_width = work.step == "one-width" or (work.step is None and len(work.widths) == 1)
        if not one_width and asked not in NATIVE_STEPS:
            return f"the local step {asked!r} is not among those of the native engine"
        if work.options != NO_OPTIONS:
            return f"the native engine knows no options of the local step {asked!r}"
        if self.workload.experiment.training.proximal_mu:
            return "the native engine has no proximal term (training.proximal_mu)"
        return None

    @cached_property
    def general(self) -> TorchEngine:
        """The torch engine, made when it is first needed."""
        engine = TorchEngine(self.workload, self.plain_network)
        # shared: a device may change its step, and so its engine, from round to round
        engine.states = self.states
        return engine

    def train(self, round: int, start: Vector, tasks: Sequence[Task]) -> Iterator[Update]:
        """Train every device with the engine that can; updates come in the order of the tasks."""
        obstacles = {work: self._obstacle(work) for work in {task.work for task in tasks}}
        others = [task for task in tasks if obstacles[task.work] is not None]
        if not others:
            yield from self._train(round, start, tasks)
            return
        if not self._said:
            self._said = True
            log.warning(
                "round %d: %d of %d devices are trained by the %s engine: %s",
                round,
                len(others),
                len(tasks),
                self.general.name,
                obstacles[others[0].work],
            )
        ours = self._train(round, start, [task for task in tasks if obstacles[task.work] is None])
        theirs = self.general.train(round, start, others)
        for task in tasks:
            yield next(ours if obstacles[task.work] is None else theirs)

    def _train(self, round: int, start: Vector, tasks: Sequence[Task]) -> Iterator[Update]:
        """Train in waves; devices of a wave with the same step share one call."""
        for begin in range(0, len(tasks), WAVE * self.threads):
            wave = tasks[begin : begin + WAVE * self.threads]
            alike: dict[Work, list[Task]] = {}
            for task in wave:
                alike.setdefault(_shared(task.work), []).append(task)
            updates: dict[int, Update] = {}
            for work, some in alike.items():
                updates |= self._train_alike(round, start, work, some)
            for task in wave:
                yield updates.pop(task.device)

    def _train_alike(
        self, round: int, start: Vector, work: Work, tasks: Sequence[Task]
    ) -> dict[int, Update]:
        schedules = self.workload.schedules(round, tasks)
        orders = [task.work.channels for task in tasks]
        places = [None if order is None else self.orders.of(order) for order in orders]
        moments = [
            self._moments(self.states.get(task.device), len(start), at)
            for task, at in zip(tasks, places, strict=True)
        ]
        starts = [start if at is None else start[at] for at in places]
        train, samples = _needed(self.workload.dataset.train, [each.samples for each in schedules])
        results = self.network.train_cohort(
            starts if any(orders) else start,
            [
                (
                    taken,
                    schedule.batch_offsets,
                    first,
                    second,
                    steps,
                    schedule.learning_rates,
                    schedule.visits.view(np.uint8),
                )
                for schedule, taken, (first, second, steps) in zip(
                    schedules, samples, moments, strict=True
                )
            ],
            train.images,
            train.labels,
            **self.normalisation,
            **_native_step(schedules[0], work),
            **self.optimiser,
            threads=self.threads,
        )
        updates = {}
        for task, schedule, (parameters, steps, losses), (first, second, _), at in zip(
            tasks, schedules, results, moments, places, strict=True
        ):
            if at is not None:
                parameters, first, second = (put_back(v, at) for v in (parameters, first, second))
            self.states.put(task.device, self._state(first, second, steps))
            held = int(self.workload.partition.sizes[task.device])
            updates[task.device] = Update(
                task.device, parameters, held, losses, schedule.images_seen
            )
        return updates

    def _moments(
        self, state: OptimiserState | None, size: int, places: NDArray[np.int64] | None
    ) -> tuple[Vector, Vector, int]:
        """Copies of the optimiser's arrays, in the order of the channels, and its steps."""
        if not state:
            return np.zeros(size, np.float32), np.zeros(size, np.float32), 0

        def copy(name: str) -> Vector:
            return state[name].copy() if places is None else state[name][places]

        if self.optimiser["optimiser"] == "sgd":
            # SGD only needs to know whether there was a step, as the first one fills the buffer
            return copy("momentum_buffer"), np.zeros(size, np.float32), 1
        return copy("exp_avg"), copy("exp_avg_sq"), int(state["step"])

    def _state(self, first: Vector, second: Vector, steps: int) -> OptimiserState:
        """The same under torch's names, so that checkpoints do not depend on the engine."""
        if self.optimiser["optimiser"] == "sgd":
            return {"momentum_buffer": first} if self.optimiser["momentum"] else {}
        return {"step": np.array(steps, np.float32), "exp_avg": first, "exp_avg_sq": second}

    def evaluate(
        self, parameters: Vector, widths: Sequence[int], *, by_label: bool = False
    ) -> list[Score]:
        """Score the widths together, as they share work."""
        test = self.workload.dataset.test
        parts = self._by_label if by_label else [test]  # one after the other takes the same work
        found = np.array([self._scores(parameters, widths, part) for part in parts])
        correct, losses = found[..., 0].astype(np.int64), found[..., 1]  # [part, width]
        return [
            Score(
                int(right.sum()) / len(test),
                float(loss.sum()) / len(test),
                tuple(right.tolist()) if by_label else None,
            )
            for right, loss in zip(correct.T, losses.T, strict=True)
        ]

    @cached_property
    def _by_label(self) -> list[Samples]:
        """The test set split by label."""
        test, classes = self.workload.dataset.test, self.workload.dataset.classes
        rows = [np.flatnonzero(test.labels == label) for label in range(classes)]
        return [Samples(test.images[where], test.labels[where]) for where in rows]

    def _scores(
        self, parameters: Vector, widths: Sequence[int], test: Samples
    ) -> list[tuple[int, float]]:
        if not len(test):
            return [(0, 0.0)] * len(widths)
        scores: list[tuple[int, float]] = self.network.evaluate(
            parameters,
            test.images,
            test.labels,
            **self.normalisation,
            width_index=list(widths),
            threads=self.threads,
        )
        return scores


#: Samples are extracted if there are this many times as many as a wave uses.
_SPARSE = 64


def _needed(
    train: Samples, samples: Sequence[NDArray[np.int64]]
) -> tuple[Samples, list[NDArray[np.int64]]]:
    """The training set, or the part of a large one that these devices use, and each one's indices.

    This pays because the native module checks every label that it gets, in every call.
    """
    lengths = [len(taken) for taken in samples]
    if sum(lengths) * _SPARSE > len(train):
        return train, list(samples)
    used, where = np.unique(np.concatenate(samples), return_inverse=True)
    parts = np.split(where.astype(samples[0].dtype), np.cumsum(lengths)[:-1])
    return Samples(train.images[used], train.labels[used]), parts


def _shared(work: Work) -> Work:
    """What devices of one call have in common: not how long they train, nor on which channels."""
    if work.channels is None and work.effort == 1:
        return work
    return replace(work, channels=None, effort=1.0)


def _native_step(schedule: LocalSchedule, work: Work) -> dict[str, Any]:
    """The schedule's step as arguments of the native module."""
    if schedule.step == "one-width":
        return {"algorithm": "width", "mode": "accumulate", "width_index": work.widths[-1]}
    algorithm, mode = NATIVE_STEPS[schedule.step]
    return {"algorithm": algorithm, "mode": mode, "weights": np.array(schedule.weights)}
