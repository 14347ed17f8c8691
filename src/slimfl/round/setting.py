"""Everything that rounds use and no round changes."""

import platform
from dataclasses import replace
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from slimfl.data import Dataset, asked, load_section, partition
from slimfl.devices import Population, population_digest, population_of, widest_widths
from slimfl.devices.computing_energy import joule_per_mac
from slimfl.engines import ChooseEngine, Engine, Workload, choose
from slimfl.errors import RequestError
from slimfl.experiment import OWN, Experiment
from slimfl.experiment.naming import as_options
from slimfl.methods import (
    VANILLA_ALL,
    VANILLA_PAPER,
    Method,
    ServerOptimiser,
    full_work,
    method_names,
)
from slimfl.methods import method as method_by_name
from slimfl.nn import (
    check,
    flatten,
    multiply_adds,
    network_of,
    output_shape,
    segments,
    statistics_positions,
)
from slimfl.radio import Channel, SignalMaker, build_channel, segment_bits, signal
from slimfl.round.clock import asked_share
from slimfl.round.expected import expected_shares, mean_noise_to_power
from slimfl.round.privacy import Clip, Privacy
from slimfl.round.stages import Bound, Radio, Stage, named_stages, places_of, sent_bits
from slimfl.runs import own
from slimfl.runs.callbacks import named_callbacks
from slimfl.training import configured_step, step


class Setting:
    """Method, channel, data, network, devices and engine of one experiment.

    The caller can replace what the experiment names by an own `dataset`, `network`, `channel` or
    `method`; `engine` chooses the arithmetic.
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
                '"package.module:factory" instead of a network object'
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
        if experiment.server.optimiser != "none":
            self.method = ServerOptimiser(self.method, experiment.server)
        self.channel = channel or build_channel(experiment.radio)
        if method is not None:
            experiment = experiment.model_copy(update={"method": method.name})
        for section, key, replaced in (
            ("data", "dataset", self._own_dataset),
            ("model", "name", network is not None),
            ("radio", "model", channel is not None),
        ):
            if replaced:
                marked = getattr(experiment, section).model_copy(update={key: OWN})
                experiment = experiment.model_copy(update={section: marked})
        self.experiment = experiment
        self.named_callbacks = named_callbacks(experiment)
        # an infeasible split and an unknown step are reported before data is loaded
        if experiment.radio.rates == "equal":
            self._check_messages(())
        step(configured_step(experiment.training), as_options(experiment.training.options))
        devices = population_of(experiment)
        widest_widths(experiment.population, devices.take([0]), widths, seed=0, round=1)
        self.dataset = dataset or load_section(experiment.data)
        self.partition = partition(
            self.dataset.train.labels,
            experiment.federation.devices,
            experiment.data,
            experiment.seed,
            _unequal_shares(experiment, devices),
            self.dataset.train.holders,
        )
        self.population = replace(devices, samples=self.partition.sizes)
        self.availability = devices.availability if (devices.availability < 1).any() else None
        if network is None:
            channels = self.dataset.train.images.shape[-1]
            network = network_of(experiment, channels, self.dataset.classes)
        else:
            check(network)
            self._own["network"] = own.of_network(network, flatten(network))
        self.network = network
        if isinstance(self.method, ServerOptimiser):
            self.method = replace(self.method, measured=statistics_positions(self.network))
        self.segments = segments(self.network, widths)
        self.places = places_of(self.network, self.segments)
        self.radio = Radio(experiment, self.channel, self.places)
        named = named_stages(experiment, self.segments, self.places)
        self.privacy: Privacy | None = None
        guards: list[Stage] = []
        if experiment.privacy.clip_norm is not None:
            self.privacy = Privacy(
                experiment.privacy, experiment.federation.devices, experiment.seed
            )
            guards = [self.privacy, Clip(experiment.privacy.clip_norm, self.places)]
        self.bound = Bound(experiment.federation)
        self.stages = [*guards, self.bound, *named, self.radio]
        """In the order of the device's side; the server passes them in reverse."""
        sizes = self.segments.sizes.tolist()
        self.segment_bits = segment_bits(experiment.radio, sizes)
        """The bits of every segment of the model, as it is downloaded."""
        self.sent_bits = sent_bits(self.stages, sizes, self.segment_bits)
        """The bits of every segment of an upload."""
        self._check_messages(self.sent_bits)
        self.multiply_adds = self._checked_costs()
        self.joule_per_mac = joule_per_mac(self.population, experiment.energy.preset)
        if self.privacy is not None and np.isfinite(self.population.battery_j).any():
            raise RequestError(
                "privacy needs devices without batteries: when one is empty depends on how many "
                "samples it holds, and so would who is counted"
            )
        self.signals = SignalMaker(experiment.radio, len(widths), self.sent_bits)
        if experiment.radio.split == "per-device":
            ratios = mean_noise_to_power(self.channel, self.population)
            self.signals.look_at(self.population, ratios, sizes)
        messages = full_work(self.method, len(widths)).messages
        self.oddities: list[str] = []
        thresholds = experiment.radio.model == "outage" and channel is None
        if messages and thresholds and experiment.radio.split != "learned":
            ratios = ratios if self.signals.per_device else np.ones(1)
            self.oddities = self.signals.oddities(messages, ratios)
        choice = engine(Workload(experiment, self.dataset, self.partition), self.network)
        self.engine: Engine = choice.engine
        self.engine_reason = choice.reason
        self.experiment = experiment.model_copy(update=choice.resolved)
        self.asking = experiment.federation.model_copy(
            update={"participation": asked_share(experiment)}
        )
        """Who is asked in a round: with over-commitment, more devices than are waited for."""
        self.tested = self.method.evaluates()
        """The widths that are tested."""
        self.in_detail = not experiment.population.is_default or self.signals.per_device
        """True if rounds record why devices are missing, and accuracies per label: for identical
        devices, neither adds to the rest of the record."""

    def _checked_costs(self) -> list[int]:
        """Multiply-adds per image of every width; refuses a network that cannot take the images."""
        model = self.experiment.model
        rows, columns, channels = self.dataset.train.images.shape[1:]
        image = (channels, rows, columns)
        try:
            costs = [
                multiply_adds(self.network, width, image, training=True) for width in model.widths
            ]
        except RuntimeError as error:
            raise RequestError(
                f"model {model.name!r} does not take images of "
                f"{channels} x {rows} x {columns}: {error}"
            ) from None
        shape = output_shape(self.network, image)
        if len(shape) != 2 or shape[1] < self.dataset.classes:
            raise RequestError(
                f"model {model.name!r} returns {' x '.join(map(str, shape[1:]))} values "
                f"for an image and {self.dataset.name} has {self.dataset.classes} classes; "
                "change model.options"
            )
        return costs

    def provenance(self) -> dict[str, Any]:
        """What the run is made with, for the run folder."""
        expected = expected_shares(
            self.experiment, self.method, self.channel, self.population, self.signals
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
            **self._population_provenance(),
            **({} if expected is None else {"expected_shares": expected}),
            "segment_bits": list(self.sent_bits),
        }

    def _population_provenance(self) -> dict[str, str]:
        """The checksum of the devices, if they are not the paper's identical ones."""
        if self.experiment.population.is_default:
            return {}
        return {"population_sha256": population_digest(self.population)}

    def own_objects(self) -> own.Given:
        """The record of the objects that replace what the experiment names."""
        if self._own_dataset and "dataset" not in self._own:
            self._own["dataset"] = own.of_dataset(self.dataset)
        return self._own

    def check_provenance(self, recorded: dict[str, Any]) -> None:
        """Refuse to resume a run with other data or objects than it was made with."""
        checksum = recorded.get("data_sha256", self.dataset.checksum)
        if checksum != self.dataset.checksum:
            raise RequestError(
                f"this run was made with different {self.dataset.name} data (checksum "
                f"{str(checksum)[:12]}); give the folder with the original files with --data-dir"
            )
        devices = self._population_provenance()
        if recorded.get("population_sha256", "") != devices.get("population_sha256", ""):
            raise RequestError(
                "this run was made with other devices, which are in its devices.csv; restore "
                "[population] in experiment.toml, or give that file as population.file"
            )
        own.check(recorded, self.own_objects())

    def _check_messages(self, bits: tuple[float, ...]) -> None:
        """Refuse messages that can never be decoded, even at full power."""
        count = len(self.experiment.model.widths)
        messages = full_work(self.method, count).messages
        if messages:
            signal(self.experiment.radio, messages, count, bits)


def _unequal_shares(experiment: Experiment, devices: Population) -> NDArray[np.float64] | None:
    """The relative amounts of data of the devices; None if all hold the same."""
    shares = devices.data_share
    if (shares == shares[0]).all():
        return None
    if experiment.engine == "flower" and experiment.data.partition != "own":
        raise RequestError(
            "devices of the flower engine partition the data themselves and do not know the "
            "data_share of others; give all devices the same, or use another engine"
        )
    return shares


def _built_in(method: Method, experiment: Experiment) -> bool:
    """True if a method is built in; refuses one that only carries a built-in name."""
    widths, missing = experiment.model.widths, experiment.federation.missing
    together = (VANILLA_ALL, VANILLA_PAPER)
    if method.name not in (*method_names(widths), *together):
        return False
    if method.name in together or method != method_by_name(method.name, widths, missing):
        raise RequestError(
            f"{method.name!r} is the name of a built-in method; rename your own method"
        )
    return True
