"""The round loop, written once for every method, engine and channel.

One round is the way of the data: who trains, what each device learns, what arrives at the server,
what is merged, what is written down.
"""

import logging
import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pydantic
from numpy.typing import NDArray
from torch import nn

from slimfl.config import OWN, Experiment
from slimfl.data import Dataset, asked, load_section, partition
from slimfl.engines import (
    ChooseEngine,
    Engine,
    Outcome,
    Workload,
    choose,
)
from slimfl.errors import RequestError, RunError
from slimfl.federation import own
from slimfl.federation.callbacks import named_callbacks
from slimfl.federation.expected import expected_shares
from slimfl.federation.filters import Filter, on_sums
from slimfl.federation.plan import Plan
from slimfl.federation.privacy.mechanism import Clip, Privacy
from slimfl.federation.receiver import Receiver
from slimfl.federation.round_book import RoundBook
from slimfl.federation.storage.checkpoint import Checkpoint, device_files_state
from slimfl.federation.storage.fitting import check_fits, made_with
from slimfl.federation.storage.part_state import checked_state, shapes
from slimfl.federation.storage.record import MOST, RoundRecord, Seconds
from slimfl.federation.storage.state_space import space_warning
from slimfl.methods import (
    VANILLA_ALL,
    VANILLA_PAPER,
    Arrivals,
    Assignment,
    Method,
    State,
    full_assignment,
    method_names,
)
from slimfl.methods import method as method_by_name
from slimfl.naming import as_options
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
from slimfl.population import Device, Population
from slimfl.population.participation import cohort
from slimfl.radio import (
    Channel,
    Messages,
    Signal,
    build_channel,
    heard,
    segment_bits,
    signal,
)
from slimfl.rng import generator
from slimfl.training import configured_step, learning_rates, local_steps, step

log = logging.getLogger(__name__)

#: A training step is a forward pass and a backward pass of about twice the work.
TRAINING_PASSES = 3


def load_dataset(experiment: Experiment) -> Dataset:
    """The dataset an experiment names, cut to the samples it asks for."""
    return load_section(experiment.data)


class Simulation:
    """A federation in this process.

    What the experiment names can be replaced by an object of the caller's own: `dataset`,
    `network`, `channel` or `method`; `engine` chooses who does the arithmetic.
    """

    def __init__(
        self,
        experiment: Experiment,
        *,
        dataset: Dataset | None = None,
        network: nn.Module | None = None,
        channel: Channel | None = None,
        method: Method | None = None,
        engine: ChooseEngine = choose,
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
        if method is not None and not _built_in(method, experiment):
            self._own["method"] = own.of_object(method)
        self.method = method or method_by_name(
            experiment.method, widths, experiment.federation.missing, experiment.method_options
        )
        self.channel = channel or build_channel(experiment.radio)
        self._signals: dict[Messages, Signal] = {}
        if method is not None:
            experiment = experiment.model_copy(update={"method": method.name})
        experiment = _marked(
            experiment,
            dataset=self._own_dataset,
            network=network is not None,
            channel=channel is not None,
        )
        self.experiment = experiment
        self.named_callbacks = named_callbacks(experiment)
        # an infeasible split and an unknown step are reported before data is loaded
        if experiment.radio.rates == "equal":
            self._check_messages()
        step(configured_step(experiment.training), as_options(experiment.training.options))
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
        self._check_messages(tuple(self.segment_bits.tolist()))
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
        choice = engine(Workload(experiment, self.dataset, self.partition), network)
        self.engine: Engine = choice.engine
        self.engine_reason = choice.reason
        self.experiment = experiment.model_copy(update=choice.resolved)
        self.privacy: Privacy | None = None
        self.filters: list[Filter] = []
        if experiment.privacy.clip_norm is not None:
            self.privacy = Privacy(
                experiment.privacy, experiment.federation.devices, experiment.seed
            )
            self.filters = [Clip(experiment.privacy.clip_norm), self.privacy]
        self.population = Population.alike(
            self.partition.sizes,
            max_width=len(widths) - 1,
            power_dbm=experiment.radio.power_dbm,
            distance_m=experiment.radio.distance_m,
        )
        self.receiver = Receiver(experiment, self.channel, self.segments, self.filters)
        self.method_state = checked_state(
            self._method_words, self.method.initial_state(self.global_model)
        )
        self.channel_state = checked_state(
            self._channel_words, self.channel.start(self.population, experiment.seed)
        )
        self.round = 0

    def checkpoint(self) -> Checkpoint:
        """All that changes from round to round."""
        tensors, state = {"global": self.global_model}, made_with(*self._made_with)
        tensors |= self._kept
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
        check_fits(checkpoint, *self._made_with, len(self.global_model), shapes(self._kept))
        tensors = dict(checkpoint.tensors)
        self.round, self.global_model = checkpoint.round, tensors.pop("global")
        self.method_state = _taken(tensors, "method/")
        self.channel_state = _taken(tensors, "channel/")
        if self.privacy is not None:
            self.privacy.restore(checkpoint.state)
        if checkpoint.device_files:
            self.engine.states.reopen(checkpoint.device_files)
        else:
            self.engine.restore_device_states(
                {key.removeprefix("device/"): value for key, value in tensors.items()}
            )

    @property
    def _kept(self) -> State:
        """What method and channel keep, under the names that a checkpoint has for it."""
        return {
            **{f"method/{name}": value for name, value in self.method_state.items()},
            **{f"channel/{name}": value for name, value in self.channel_state.items()},
        }

    @property
    def _method_words(self) -> str:
        return f"method {self.method.name!r}"

    @property
    def _channel_words(self) -> str:
        return f"channel {type(self.channel).__name__}"

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
        bits = tuple(self.segment_bits.tolist())
        expected = expected_shares(
            self.experiment, self.method, self.channel, self.population, bits
        )
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
            **({} if expected is None else {"expected_shares": expected}),
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

    def step(self) -> RoundRecord:
        """One round; returns its record."""
        plan = self.plan()
        return self.collect(plan, self._outcomes(plan))

    def plan(self) -> Plan:
        """The next round: who takes part, what each device trains and sends, over which link."""
        seed, number = self.experiment.seed, self.round + 1
        who = cohort(self.experiment.federation, seed, number)
        asked = self.population.take(np.array(who.active, np.int64))
        absent = list(who.dropped_out)
        radio = self.experiment.radio
        if radio.downlink == "lossy":
            hears = heard(radio, self.channel, self.channel_state, number, asked, seed)
            absent = sorted([*absent, *asked.ids[~hears].tolist()])
            asked = asked.take(hears)
        assigned = [self._assign(device, number) for device in asked]
        rows = [row for row, assignment in enumerate(assigned) if assignment is not None]
        devices = asked if len(rows) == len(asked) else asked.take(rows)
        assignments = [assignment for assignment in assigned if assignment is not None]
        links, state = self.channel.links(self.channel_state, number, devices, seed)
        state = checked_state(self._channel_words, state, self.channel_state)
        return Plan(
            number,
            devices,
            assignments,
            [self._signal(assignment.messages) for assignment in assignments],
            links,
            state,
            absent,
        )

    def collect(self, plan: Plan, outcomes: Iterator[Outcome]) -> RoundRecord:
        """What arrives of the devices' updates, what is merged, what is recorded."""
        book = RoundBook(plan, len(self.experiment.model.widths))
        for each in self.filters:
            each.begin(plan.round, self.global_model)
        stream = self.receiver.arrivals(plan, outcomes, book)
        arrivals = Arrivals(
            self.global_model,
            stream,
            on_sums(self.filters),
            asked=len(plan) + len(plan.absent),
            absent=self.experiment.federation.absent,
        )
        model, state = self.method.aggregate(self.global_model, self.method_state, arrivals)
        for _ in stream:  # what a method does not look at was trained and sent all the same
            pass
        state = checked_state(self._method_words, state, self.method_state)
        self.global_model, self.method_state = self._checked_model(model), state
        self.channel_state, self.round = plan.channel_state, plan.round
        return self._line(plan, book, time.perf_counter())

    def _checked_model(self, model: Vector) -> Vector:
        """What a method made of the model, as engines and checkpoints need it."""
        expected = self.global_model.shape
        if np.shape(model) != expected:
            raise RequestError(
                f"{self._method_words} returned a model of shape {np.shape(model)}, not {expected}"
            )
        return np.ascontiguousarray(model, np.float32)

    def _assign(self, device: Device, number: int) -> Assignment | None:
        random = partial(generator, self.experiment.seed, "assignment", number, device.id)
        return self.method.assign(device, number, random)

    def _line(self, plan: Plan, book: RoundBook, trained: float) -> RoundRecord:
        """What is recorded of the round, with the model tested where that is due."""
        experiment, federation = self.experiment, self.experiment.federation
        names = [f"{width}x" for width in experiment.model.widths]
        scores = {}
        if plan.round % federation.evaluate_every == 0 or plan.round == experiment.rounds:
            tested = self.method.evaluates()
            scored = self.engine.evaluate(self.global_model, tested)
            scores = dict(zip((names[i] for i in tested), scored, strict=True))
        losses = book.losses
        values = {
            "round": plan.round,
            "accuracy": {name: score.accuracy for name, score in scores.items()},
            "loss": {name: _finite(score.loss) for name, score in scores.items()},
            # reported losses are not covered by the noise
            "training_loss": {
                names[i]: _finite(losses.mean[i])
                for i in range(len(names))
                if losses.counts[i] and self.privacy is None
            },
            "learning_rate": self._learning_rate(plan.round, book.samples),
            "devices": book.devices,
            "dropped_out": book.dropped_out,
            "refused": book.refused,
            # a channel may know none, and JSON has no NaN
            "gains": book.gains if np.isfinite(book.gains).all() else None,
            "decoded": [len(segments) for segments in book.arrived],
            "delivered": book.delivered,
            **asdict(book.ledger.total()),
            "images": book.images,
            "multiply_adds": self._work(book),
            "paper_mflops": self._paper_mflops(plan),
            **({"privacy": self.privacy.spent()} if self.privacy else {}),
            "seconds": Seconds(
                training=trained - plan.began_s, evaluation=time.perf_counter() - trained
            ),
        }
        try:
            return RoundRecord(**values)
        except pydantic.ValidationError as error:  # of a channel or a network of the user's own
            first = error.errors(include_url=False)[0]
            raise RunError(
                f"round {plan.round}: {first['loc'][0]} cannot be recorded: {first['msg']}"
            ) from None

    def _check_messages(self, bits: tuple[float, ...] = ()) -> None:
        """Refuse messages that can never be decoded, as a device of full strength sends them."""
        count = len(self.experiment.model.widths)
        messages = full_assignment(self.method, count).messages
        if messages:
            signal(self.experiment.radio, messages, count, bits)

    def _signal(self, messages: Messages) -> Signal:
        if messages not in self._signals:
            bits = tuple(self.segment_bits.tolist())
            count = len(self.experiment.model.widths)
            self._signals[messages] = signal(self.experiment.radio, messages, count, bits)
        return self._signals[messages]

    def _outcomes(self, plan: Plan) -> Iterator[Outcome]:
        """The engine's outcomes; an error says in which round, on which device it happened."""
        tasks = plan.tasks
        outcomes = self.engine.train(plan.round, self.global_model, tasks)
        for task in tasks:
            try:
                yield next(outcomes)
            except (RequestError, RunError):
                raise
            except Exception as error:
                raise RunError(
                    f"round {plan.round}, device {task.device}, training: {error}"
                ) from error
        # an engine may have a last word, such as that there was no quorum
        next(outcomes, None)

    def _work(self, book: RoundBook) -> int:
        """Multiply-adds of all local training."""
        seen = zip(book.images_by_width.tolist(), self.multiply_adds, strict=True)
        return TRAINING_PASSES * sum(images * per_image for images, per_image in seen)

    def _paper_mflops(self, plan: Plan) -> float:
        """Table V's computation cost: one forward pass at every trained width, in millions."""
        if not plan.assignments:
            return 0.0
        return sum(self.multiply_adds[i] for i in plan.assignments[0].widths) / 1e6

    def _learning_rate(self, number: int, samples: Sequence[int]) -> float | None:
        """The learning rate of the round's first step; None where nobody trained.

        Under `theorem1` with whole epochs it depends on how many steps a device takes, so on how
        many samples it holds: then the median over devices.
        """
        training, rounds = self.experiment.training, self.experiment.rounds
        steps = [local_steps(training, held) for held in samples]
        first = {n: float(learning_rates(training, rounds, number, n)[0]) for n in set(steps)}
        return median(first[n] for n in steps) if steps else None


def _taken(tensors: dict[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """Take the arrays with a prefix out of a dictionary."""
    names = [name for name in tensors if name.startswith(prefix)]
    return {name.removeprefix(prefix): tensors.pop(name) for name in names}


def _built_in(method: Method, experiment: Experiment) -> bool:
    """Whether a method is one of ours; one that only carries its name is refused."""
    widths, missing = experiment.model.widths, experiment.federation.missing
    together = (VANILLA_ALL, VANILLA_PAPER)
    if method.name not in (*method_names(widths), *together):
        return False
    if method.name in together or method != method_by_name(method.name, widths, missing):
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
        sections["radio"] = experiment.radio.model_copy(update={"model": OWN})
    return experiment.model_copy(update=sections)


def _finite(value: float) -> float | None:
    """A loss, None if it has diverged: JSON has no infinity, and a record has limits."""
    return float(value) if abs(value) <= MOST else None
