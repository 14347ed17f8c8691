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
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from slimfl.config import OWN, Experiment
from slimfl.data import Dataset, asked, load_section, partition
from slimfl.engines import Engine, Missing, Outcome, Task, Update, Workload, choose
from slimfl.errors import RequestError, RunError
from slimfl.federation import own
from slimfl.federation.absent import over_all
from slimfl.federation.callbacks import Callback, Callbacks
from slimfl.federation.checkpoint import Checkpoint, device_files_state
from slimfl.federation.convergence import convergence
from slimfl.federation.fitting import check_fits, made_with
from slimfl.federation.merge import RefusedUpdateError, SegmentAverage
from slimfl.federation.method import Method
from slimfl.federation.methods import VANILLA_ALL, method_names
from slimfl.federation.methods import method as method_by_name
from slimfl.federation.participation import cohort
from slimfl.federation.privacy import Privacy
from slimfl.federation.record import Line
from slimfl.federation.run_folder import CHECKPOINTS, RunFolder, RunWriter
from slimfl.federation.run_log import log_to
from slimfl.federation.state_space import space_warning
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
from slimfl.training import learning_rates, local_steps

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
        self._own_dataset = dataset is not None and dataset.loaded_as != asked(experiment.data)
        self._own: own.Given = {}
        if channel is not None:
            self._own["channel"] = own.of_object(channel)
        if method is not None and not _built_in(method, widths):
            self._own["method"] = own.of_object(method)
        self.method = method or method_by_name(experiment.method, widths)
        self.channel = channel or channel_of(experiment.radio)
        self._signals: dict[Messages, Signal] = {}
        experiment = _marked(
            experiment.model_copy(update={"method": self.method.name}),
            dataset=self._own_dataset,
            network=network is not None,
            channel=channel is not None,
        )
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
        own_network = network is not None
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
        if own_network:
            self._own["network"] = own.of_network(network, self.global_model)
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
        tensors, state = {"global": self.global_model}, made_with(*self._made_with)
        if self.privacy is not None:
            state |= self.privacy.state()
        states = self.engine.states
        if states.folder is None or states.small:
            tensors |= {f"device/{k}": v for k, v in self.engine.device_states().items()}
        else:
            state |= device_files_state(states.save())
        return Checkpoint(self.round, tensors, state)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on where a checkpoint was written; one of another run is refused."""
        check_fits(checkpoint, *self._made_with, len(self.global_model))
        tensors = dict(checkpoint.tensors)
        self.round, self.global_model = checkpoint.round, tensors.pop("global")
        if self.privacy is not None:
            self.privacy.restore(checkpoint.state)
        if checkpoint.device_files:
            self.engine.states.reopen(checkpoint.device_files)
        else:
            self.engine.restore_device_states(
                {key.removeprefix("device/"): value for key, value in tensors.items()}
            )

    @property
    def _made_with(self) -> tuple[Experiment, str]:
        return self.experiment, self.dataset.checksum

    def keep_states_in(self, folder: Path | None) -> None:
        """Where the states of many devices go; without a folder, where temporary files do."""
        self.engine.states.folder = folder
        warning = space_warning(self.experiment, len(self.global_model), folder)
        if warning is not None:
            log.warning("%s", warning)

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
        return {
            "data_sha256": self.dataset.checksum,
            "versions": versions,
            "own": self.own_objects(),
        }

    def own_objects(self) -> own.Given:
        """What is recorded of the objects that were given in place of what the experiment names."""
        if self._own_dataset and "dataset" not in self._own:
            self._own["dataset"] = own.of_dataset(self.dataset)
        return self._own

    def check_provenance(self, recorded: dict[str, Any]) -> None:
        """A run goes on with the data and the objects it was made with, or not at all."""
        checksum = recorded.get("data_sha256", self.dataset.checksum)
        if checksum != self.dataset.checksum:
            raise RequestError(
                f"this run was made with other {self.dataset.name} data (checksum "
                f"{str(checksum)[:12]}); give --data-dir the folder with the original files"
            )
        own.check(recorded, self.own_objects())

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
        work = images = 0
        samples: list[int] = []
        if self.privacy is not None:
            self.privacy.begin()
        for k, (outcome, task) in enumerate(zip(self._outcomes(number, tasks), tasks, strict=True)):
            if experiment.radio.gains == "measured" and isinstance(outcome, Update):
                outcome = self._measured(outcome, signals[k], gains, messages_decoded, k)
            if isinstance(outcome, Missing):
                log.warning(
                    "round %d: nothing from device %d: %s", number, task.device, outcome.reason
                )
                if self.privacy is not None:
                    counted = self._counted(signals[k], messages_decoded[k])
                    self.privacy.add(average, None, (), task.device, counted)
                continue
            there.append(k)
            losses.add(outcome.losses.tolist())
            work += self._work(outcome)
            images += int(outcome.images_seen.max())
            samples.append(outcome.samples)
            delivered = signals[k].segments_decoded(messages_decoded[k])
            counted = self._counted(signals[k], messages_decoded[k])
            if not counted:
                continue
            try:
                self._merge(average, outcome, delivered, counted)
            except RefusedUpdateError as error:
                log.warning(
                    "round %d: update of device %d refused: it %s", number, task.device, error
                )
                refused.append(task.device)
        if self.privacy is not None:
            self.global_model = self.privacy.result(average, number)
        elif federation.absent == "skip":
            self.global_model = average.result()
        else:
            asked = len(who.active) + len(who.dropped_out)
            self.global_model = over_all(average, asked, federation.absent)
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
            "learning_rate": self._learning_rate(number, samples),
            "devices": active,
            "dropped_out": sorted({*who.dropped_out, *who.active} - {*active}),
            "refused": refused,
            "gains": gains[there].tolist(),
            "decoded": [len(segments) for segments in arrived],
            "delivered": [sum(s in d for d in merged) for s in range(len(names))],
            **asdict(radio_cost(experiment.radio, self.segment_bits, uploads)),
            "images": images,
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

    def _counted(self, sent: Signal, messages_decoded: int) -> tuple[int, ...]:
        """The segments in whose average a device counts: those that arrive.

        In private that must not depend on what a device does. Its own measurement is such a thing,
        so all that it was asked to send is counted then.
        """
        if self.privacy is not None and self.experiment.radio.gains == "measured":
            return sent.segments_decoded(len(sent.messages))
        return sent.segments_decoded(messages_decoded)

    def _merge(
        self,
        average: SegmentAverage,
        update: Update,
        delivered: Sequence[int],
        counted: Sequence[int],
    ) -> None:
        if self.privacy is not None:
            self.privacy.add(average, update.parameters, delivered, update.device, counted)
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

    def _work(self, update: Update) -> int:
        """Multiply-adds of a device's local training."""
        seen = zip(update.images_seen, self.multiply_adds, strict=True)
        return TRAINING_PASSES * sum(int(images) * per_image for images, per_image in seen)

    def _paper_mflops(self, tasks: Sequence[Task]) -> float:
        """Table V's computation cost: one forward pass at every trained width, in millions."""
        if not tasks:
            return 0.0
        return sum(self.multiply_adds[i] for i in tasks[0].curriculum.widths) / 1e6

    def _learning_rate(self, number: int, samples: Sequence[int]) -> float | None:
        """The learning rate of the round's first step; None where nobody trained.

        Under `theorem1` with whole epochs it depends on how many steps a device takes, so on how
        many samples it holds: then the median over devices.
        """
        training, rounds = self.experiment.training, self.experiment.rounds
        steps = [local_steps(training, held) for held in samples]
        first = {n: float(learning_rates(training, rounds, number, n)[0]) for n in set(steps)}
        return median(first[n] for n in steps) if steps else None


def _built_in(method: Method, widths: tuple[float, ...]) -> bool:
    """Whether a method is one of ours; one that only carries its name is refused."""
    if method.name not in (*method_names(widths), VANILLA_ALL):
        return False
    if method.name == VANILLA_ALL or method != method_by_name(method.name, widths):
        raise RequestError(
            f"{method.name!r} is the name of a built-in method; give your own method another name"
        )
    return True


def _marked(experiment: Experiment, *, dataset: bool, network: bool, channel: bool) -> Experiment:
    """The experiment with a mark in place of every name that an object replaces."""
    sections: dict[str, Any] = {}
    if dataset:
        sections["data"] = experiment.data.model_copy(update={"dataset": OWN})
    if network:
        sections["model"] = experiment.model.model_copy(update={"name": OWN})
    if channel:
        sections["radio"] = experiment.radio.model_copy(update={"fading": OWN})
    return experiment.model_copy(update=sections)


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
    *,
    until: int | None = None,
) -> list[Line]:
    """Run a simulation to its end, in a folder (going on where it stopped) or in memory only.

    `until` is a round to stop after, whatever number of rounds the experiment asks for.
    """
    simulation.keep_states_in(folder.path / CHECKPOINTS if folder else None)
    if folder is None:
        if simulation.privacy is not None:
            simulation.privacy.start(simulation.experiment.data, None)
        return _rounds(simulation, [], None, Callbacks(callbacks), until)
    with log_to(folder.path / "run.log"), folder.writing() as writer:
        lines = _go_back(simulation, folder, writer)
        if simulation.privacy is not None:
            simulation.privacy.start(simulation.experiment.data, folder.path)
        if simulation.experiment.data.partition != "own":  # then only the devices know
            counts = simulation.partition.class_counts(
                simulation.dataset.train.labels, simulation.dataset.classes
            )
            folder.write_partition(counts.tolist())
        return _rounds(simulation, lines, writer, Callbacks(callbacks), until)


def _go_back(simulation: Simulation, folder: RunFolder, writer: RunWriter) -> list[Line]:
    """Restore the newest checkpoint that the intact lines lead to; returns the lines up to it."""
    found = folder.intact_metrics()
    ahead = folder.checkpointed_round()
    checkpoint = folder.checkpoint(at_most=len(found.lines))
    if checkpoint is not None:
        simulation.restore(checkpoint)
    else:
        own.check_start(folder.provenance(), simulation.own_objects())
    if found.damage or ahead > len(found.lines):
        reason = found.damage or f"the metrics end before the checkpoint of round {ahead}"
        way = f"goes on after round {simulation.round}" if simulation.round else "starts over"
        log.warning("%s: %s; the run %s", folder.path, reason, way)
    return writer.keep_until(simulation.round)


def finished(experiment: Experiment, lines: list[Line], until: int | None = None) -> bool:
    """Whether these are all rounds of a run."""
    section = experiment.federation
    if section.stop_on_convergence and convergence(lines, section) is not None:
        return True
    return len(lines) >= (experiment.rounds if until is None else until)


def completed(
    folder: RunFolder,
    experiment: Experiment,
    *,
    until: int | None = None,
    verify: bool = False,
) -> bool:
    """Whether a run folder has nothing left to run: all its rounds, and the last one's checkpoint.

    With `verify` the checkpoint is also read, which takes longer, and found to be intact.
    """
    found = folder.intact_metrics()
    rounds = len(found.lines)
    if found.damage or not finished(experiment, found.lines, until):
        return False
    if folder.checkpointed_round() != rounds:
        return False
    checkpoint = folder.checkpoint() if verify else None
    return not verify or (checkpoint is not None and checkpoint.round == rounds)


def _rounds(
    simulation: Simulation,
    lines: list[Line],
    writer: RunWriter | None,
    callbacks: Callbacks,
    until: int | None,
) -> list[Line]:
    experiment = simulation.experiment
    callbacks.start(experiment, len(lines))
    try:
        while not finished(experiment, lines, until):
            line = simulation.step()
            lines.append(line)
            if writer is not None:
                writer.append(line)
                last = finished(experiment, lines, until)
                if last or simulation.round % experiment.federation.checkpoint_every == 0:
                    writer.checkpoint(simulation.checkpoint())
            callbacks.round(line)
    finally:
        callbacks.end()
    return lines
