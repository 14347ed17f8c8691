"""The round loop, written once for every method, engine and channel.

One round is the way of the data: who trains, what each device learns, what arrives at the server,
what is merged, what is written down.
"""

import logging
import math
import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from slimfl.config import Experiment
from slimfl.data import Dataset, load_section, partition
from slimfl.engines import Engine, Missing, Outcome, Task, Update, Workload, choose
from slimfl.errors import RequestError, RunError
from slimfl.federation.callbacks import Callback, Callbacks
from slimfl.federation.checkpoint import Checkpoint
from slimfl.federation.convergence import convergence
from slimfl.federation.merge import RefusedUpdateError, SegmentAverage
from slimfl.federation.method import Method
from slimfl.federation.methods import method as method_by_name
from slimfl.federation.participation import cohort
from slimfl.federation.privacy import Privacy
from slimfl.federation.run_folder import Line, RunFolder, RunWriter
from slimfl.nn import (
    Vector,
    build,
    check,
    flatten,
    load_flat,
    multiply_adds,
    output_shape,
    segments,
)
from slimfl.radio import Channel, Gains, Messages, Signal, radio_cost, segment_bits, signal
from slimfl.radio import channel as channel_of
from slimfl.training import learning_rates

if TYPE_CHECKING:
    from flwr.serverapp import Grid

log = logging.getLogger(__name__)

#: A training step is a forward pass and a backward pass of about twice the work.
TRAINING_PASSES = 3


def load_dataset(experiment: Experiment) -> Dataset:
    """The dataset an experiment names, cut to the samples it asks for."""
    return load_section(experiment.data)


class Simulation:
    """A federation in this process.

    What the experiment names can be replaced by an object of the caller's own: `dataset`,
    `network`, `channel` or `method`. With `grid`, the flower engine works with the devices behind
    it.
    """

    def __init__(
        self,
        experiment: Experiment,
        *,
        dataset: Dataset | None = None,
        network: nn.Module | None = None,
        channel: Channel | None = None,
        method: Method | None = None,
        grid: "Grid | None" = None,
    ) -> None:
        if experiment.engine == "flower" and network is not None:
            raise RequestError(
                "devices of the flower engine build the network themselves: give model.name = "
                '"package.module:factory" instead of a network'
            )
        widths = experiment.model.widths
        self.method = method or method_by_name(experiment.method, widths)
        self.channel = channel or channel_of(experiment.radio)
        self._signals: dict[Messages, Signal] = {}
        self.experiment = experiment
        self._signal(self.method.sends(0))  # an infeasible split is told before data is loaded
        self.dataset = dataset or load_dataset(experiment)
        self.partition = partition(
            self.dataset.train.labels,
            experiment.federation.devices,
            experiment.data,
            experiment.seed,
        )
        rows, columns, channels = self.dataset.train.images.shape[1:]
        if network is not None:
            check(network)
        network = network or build(
            experiment.model.name,
            experiment.model.options,
            in_channels=channels,
            classes=self.dataset.classes,
            initialisation=experiment.model.initialisation,
            seed=experiment.seed,
        )
        self.network = network
        self.global_model: Vector = flatten(network)
        self.segments = segments(network, widths)
        self.segment_bits = segment_bits(experiment.radio, self.segments.sizes.tolist())
        try:
            self.multiply_adds = [
                multiply_adds(network, width, (channels, rows, columns)) for width in widths
            ]
        except RuntimeError as error:
            raise RequestError(
                f"model {experiment.model.name!r} does not take images of "
                f"{channels} x {rows} x {columns}: {error}"
            ) from None
        shape = output_shape(network, (channels, rows, columns))
        if len(shape) != 2 or shape[1] < self.dataset.classes:
            raise RequestError(
                f"model {experiment.model.name!r} returns {' x '.join(map(str, shape[1:]))} values "
                f"for an image and {self.dataset.name} has {self.dataset.classes} classes; "
                "change model.options"
            )
        choice = choose(Workload(experiment, self.dataset, self.partition), network, grid)
        self.engine: Engine = choice.engine
        self.engine_reason = choice.reason
        self.experiment = experiment.model_copy(update=choice.resolved)
        self.privacy = (
            Privacy(experiment.privacy, experiment.federation.devices, experiment.seed)
            if experiment.privacy.clip_norm is not None
            else None
        )
        self.round = 0

    def checkpoint(self) -> Checkpoint:
        """All that changes from round to round."""
        devices = {f"device/{k}": v for k, v in self.engine.device_states().items()}
        state = {"heard": self.privacy.heard.tolist()} if self.privacy else {}
        return Checkpoint(self.round, {"global": self.global_model, **devices}, state)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on where a checkpoint was written."""
        tensors = dict(checkpoint.tensors)
        self.round, self.global_model = checkpoint.round, tensors.pop("global")
        if self.privacy is not None:
            self.privacy.heard[:] = checkpoint.state["heard"]
        self.engine.restore_device_states(
            {key.removeprefix("device/"): value for key, value in tensors.items()}
        )

    def trained_network(self) -> nn.Module:
        """The network with the global model in it."""
        load_flat(self.network, self.global_model)
        return self.network

    def provenance(self) -> dict[str, Any]:
        """What the run is made with."""
        versions = {"python": platform.python_version()}
        for package in ("slimfl", "torch", "numpy"):
            try:
                versions[package] = metadata.version(package)
            except metadata.PackageNotFoundError:
                versions[package] = "not installed"
        return {"data_sha256": self.dataset.checksum, "versions": versions}

    def check_provenance(self, recorded: dict[str, Any]) -> None:
        """A run goes on with the data it was made with, or not at all."""
        checksum = recorded.get("data_sha256", self.dataset.checksum)
        if checksum != self.dataset.checksum:
            raise RequestError(
                f"this run was made with other {self.dataset.name} data (checksum "
                f"{checksum[:12]}); give --data-dir the folder with the original files"
            )

    def step(self) -> Line:
        """One round; returns its line of metrics."""
        experiment, federation = self.experiment, self.experiment.federation
        number = self.round + 1
        started = time.perf_counter()

        who = cohort(federation, experiment.seed, number)
        signals = [self._signal(self.method.sends(device)) for device in who.active]
        gains, messages_decoded = self._channel(number, who.active, signals)

        average = self.method.merge(self.segments, self.global_model, federation.missing)
        tasks = self.tasks(who.active)
        losses = _MeanLosses(len(experiment.model.widths))
        there: list[int] = []
        refused: list[int] = []
        work = 0
        for k, (outcome, task) in enumerate(zip(self._outcomes(number, tasks), tasks, strict=True)):
            if experiment.radio.gains == "measured" and isinstance(outcome, Update):
                outcome = self._measured(outcome, signals[k], gains, messages_decoded, k)
            if isinstance(outcome, Missing):
                log.warning(
                    "round %d: nothing from device %d: %s", number, task.device, outcome.reason
                )
                continue
            there.append(k)
            losses.add(outcome.losses.tolist())
            work += self._work(outcome, task)
            delivered = signals[k].segments_decoded(messages_decoded[k])
            if not delivered:
                continue
            try:
                self._merge(average, outcome, delivered)
            except RefusedUpdateError as error:
                log.warning(
                    "round %d: update of device %d refused: it %s", number, task.device, error
                )
                refused.append(task.device)
        if self.privacy is None:
            self.global_model = average.result()
        else:
            self.global_model = self.privacy.result(average, number)
        self.round = number
        trained = time.perf_counter()

        names = [f"{width}x" for width in experiment.model.widths]
        scores = {}
        if number % federation.evaluate_every == 0 or number == experiment.rounds:
            scored = self.engine.evaluate(self.global_model, self.method.widths)
            scores = dict(zip((names[i] for i in self.method.widths), scored, strict=True))
        active = [who.active[k] for k in there]
        uploads = [(signals[k], messages_decoded[k]) for k in there]
        arrived = [sent.segments_decoded(count) for sent, count in uploads]
        merged = [d for d, device in zip(arrived, active, strict=True) if device not in refused]
        return {
            "round": number,
            "accuracy": {name: score.accuracy for name, score in scores.items()},
            "loss": {name: _finite(score.loss) for name, score in scores.items()},
            # what devices tell of their losses is outside of what noise protects
            "training_loss": {
                names[i]: _finite(losses.mean[i])
                for i in range(len(names))
                if losses.counts[i] and self.privacy is None
            },
            "learning_rate": self._learning_rate(number),
            "devices": active,
            "dropped_out": sorted({*who.dropped_out, *who.active} - {*active}),
            "refused": refused,
            "gains": gains[there].tolist(),
            "decoded": [len(segments) for segments in arrived],
            "delivered": [sum(s in d for d in merged) for s in range(len(names))],
            **asdict(radio_cost(experiment.radio, self.segment_bits, uploads)),
            "multiply_adds": work,
            "paper_mflops": self._paper_mflops(tasks),
            **({"privacy": self.privacy.spent()} if self.privacy else {}),
            "seconds": {
                "training": trained - started,
                "evaluation": time.perf_counter() - trained,
            },
        }

    def tasks(self, devices: Sequence[int]) -> list[Task]:
        """What the method has these devices do."""
        return [Task(device, self.method.trains(device)) for device in devices]

    def _merge(self, average: SegmentAverage, update: Update, delivered: Sequence[int]) -> None:
        if self.privacy is not None:
            self.privacy.add(average, update.parameters, delivered, update.device)
            return
        weighted = self.experiment.federation.average == "samples"
        average.add(update.parameters, delivered, float(update.samples) if weighted else 1.0)

    def _channel(
        self, number: int, devices: Sequence[int], signals: Sequence[Signal]
    ) -> tuple[Gains, list[int]]:
        """The gains of the devices and how many of their messages arrive, as far as it is known."""
        if self.experiment.radio.gains == "measured":
            return np.full(len(devices), np.nan), [0] * len(devices)
        everybody = self.experiment.federation.devices
        gains = self.channel.gains(self.experiment.seed, number, everybody)[list(devices)]
        return gains, self._decode(signals, gains)

    def _measured(
        self, update: Update, sent: Signal, gains: Gains, messages_decoded: list[int], k: int
    ) -> Outcome:
        """Let the gain that a device measured decide what of its update arrives."""
        if update.gain is None:
            return Missing(update.device, "it reported no measured gain; give its node a gain-file")
        gains[k] = update.gain
        messages_decoded[k] = int(self.channel.decoded(sent.coding, gains[k : k + 1])[0])
        return update

    def _signal(self, messages: Messages) -> Signal:
        if messages not in self._signals:
            count = len(self.experiment.model.widths)
            self._signals[messages] = signal(self.experiment.radio, messages, count)
        return self._signals[messages]

    def _decode(self, signals: Sequence[Signal], gains: Gains) -> list[int]:
        """How many messages of each signal arrive; devices that send alike are decoded at once."""
        decoded = np.zeros(len(signals), np.int64)
        for sent in dict.fromkeys(signals):
            who = [k for k, other in enumerate(signals) if other is sent]
            decoded[who] = self.channel.decoded(sent.coding, gains[who])
        return decoded.tolist()

    def _outcomes(self, number: int, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """The engine's outcomes; an error says in which round, on which device it happened."""
        outcomes = self.engine.train(number, self.global_model, tasks)
        for task in tasks:
            try:
                yield next(outcomes)
            except (RequestError, RunError):
                raise
            except Exception as error:
                raise RunError(
                    f"round {number}, device {task.device}, training: {error}"
                ) from error
        # an engine may have a last word, such as that there was no quorum
        next(outcomes, None)

    def _work(self, update: Update, task: Task) -> int:
        """Multiply-adds of a device's local training."""
        training = self.experiment.training
        if training.steps is None:
            seen = update.samples * (training.epochs or 1)
        else:
            seen = min(training.batch_size, update.samples) * training.steps
        per_image = sum(self.multiply_adds[i] for i in task.curriculum.widths)
        return TRAINING_PASSES * seen * per_image

    def _paper_mflops(self, tasks: Sequence[Task]) -> float:
        """Table V's computation cost: one forward pass at every trained width, in millions."""
        if not tasks:
            return 0.0
        return sum(self.multiply_adds[i] for i in tasks[0].curriculum.widths) / 1e6

    def _learning_rate(self, number: int) -> float:
        steps = self.experiment.training.steps or 1
        return float(
            learning_rates(self.experiment.training, self.experiment.rounds, number, steps)[0]
        )


class _MeanLosses:
    """The mean over devices of every width's training loss, where a device trained that width."""

    def __init__(self, widths: int) -> None:
        self.counts, self.sums = [0] * widths, [0.0] * widths

    def add(self, losses: Sequence[float]) -> None:
        for i, loss in enumerate(losses):
            if not math.isnan(loss):
                self.counts[i] += 1
                self.sums[i] += loss

    @property
    def mean(self) -> list[float]:
        return [total / max(count, 1) for total, count in zip(self.sums, self.counts, strict=True)]


def _finite(value: float) -> float | None:
    """JSON has no infinity; a diverged loss is null."""
    return float(value) if math.isfinite(value) else None


def run(
    simulation: Simulation,
    folder: RunFolder | None = None,
    callbacks: Sequence[Callback] = (),
) -> list[Line]:
    """Run a simulation to its end, in a folder (going on where it stopped) or in memory only."""
    if folder is None:
        return _rounds(simulation, [], None, Callbacks(callbacks))
    handler = logging.FileHandler(folder.path / "run.log", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("slimfl")
    logger.addHandler(handler)
    try:
        with folder.writing() as writer:
            checkpoint = folder.checkpoint()
            if checkpoint is not None:
                simulation.restore(checkpoint)
            lines = writer.keep_until(simulation.round)
            if simulation.experiment.data.partition != "own":  # then only the devices know
                counts = simulation.partition.class_counts(
                    simulation.dataset.train.labels, simulation.dataset.classes
                )
                folder.write_partition(counts.tolist())
            return _rounds(simulation, lines, writer, Callbacks(callbacks))
    finally:
        logger.removeHandler(handler)
        handler.close()


def finished(experiment: Experiment, lines: list[Line]) -> bool:
    """Whether a run with these rounds behind it has nothing left to do."""
    section = experiment.federation
    if section.stop_on_convergence and convergence(lines, section) is not None:
        return True
    return len(lines) >= experiment.rounds


def _rounds(
    simulation: Simulation, lines: list[Line], writer: RunWriter | None, callbacks: Callbacks
) -> list[Line]:
    experiment = simulation.experiment
    callbacks.start(experiment, len(lines))
    try:
        while not finished(experiment, lines):
            line = simulation.step()
            lines.append(line)
            if writer is not None:
                writer.append(line)
                last = finished(experiment, lines)
                if last or simulation.round % experiment.federation.checkpoint_every == 0:
                    writer.checkpoint(simulation.checkpoint())
            callbacks.round(line)
    finally:
        callbacks.end()
    return lines
