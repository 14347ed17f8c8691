"""The device's side: carry out an order with an engine in this process.

The server does not own the device. Its orders must not make a device import code, read other
folders than its own, or fill its memory.
"""

import hashlib
import json
import threading
import tomllib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from slimfl import experiment as config
from slimfl.data import (
    SOURCES,
    Dataset,
    Partition,
    all_of_one,
    load,
    load_section,
    partition,
)
from slimfl.engines.base import Engine, Update, Workload
from slimfl.engines.choice import choose
from slimfl.errors import RequestError
from slimfl.experiment import DataSection, Experiment
from slimfl.experiment.naming import construct, module_of, trusting
from slimfl.flower.messages import MOST, Answer, Order, digest, most_images
from slimfl.nn import MODELS, build

#: The largest number of widths.
MOST_WIDTHS = 64

#: Datasets that every machine finds by name.
NAMED = (*SOURCES, "synthetic")


@dataclass(frozen=True)
class Equipment:
    """What a device has, from the configuration of its node."""

    number: int | None = None
    """The device's number; None if the server assigns it."""
    data_dir: Path | None = None
    """Folder of its data: the files of a named dataset, or its own four idx files."""
    gain_file: Path | None = None
    """File in which its radio stores the last measured power gain."""
    models: tuple[str, ...] = ()
    """Networks that a server may order besides the built-in ones: `package.module:Name`."""
    simulated: bool = False
    """True if the server's process started this one. It then plays whichever device the server
    names, and its orders come from its own user."""


class Workbench:
    """Holds the device's engine as long as the experiment stays the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key = ""
        self._engine: Engine | None = None

    def work(self, order: Order, equipment: Equipment) -> Answer:
        """Train as ordered."""
        device = order.task.device
        if not equipment.simulated and equipment.number != device:
            raise RequestError(
                f"this node is device {equipment.number} and was asked as device {device}; give it "
                f"partition-id={device}, or register its key under its own name"
            )
        with self._lock:
            engine = self._engine_for(order, equipment)
            # nothing of the devices that this process played before
            engine.states.restore({f"{device}/{k}": v for k, v in order.state.items()})
            (update,) = engine.train(order.round, order.start, [order.task])
            assert isinstance(update, Update)
            state = engine.states.get(device) or {}
        if equipment.gain_file is not None:
            update = replace(update, gain=measured_gain(equipment.gain_file))
        return Answer(order.round, update, digest(order.start), state)

    def _engine_for(self, order: Order, equipment: Equipment) -> Engine:
        moments = [array.tolist() for array in order.moments]
        # in a simulation, one process plays many devices that share one dataset
        who = None if equipment.simulated else order.task.device
        text = json.dumps([order.experiment, str(equipment.data_dir), moments, who])
        key = hashlib.sha256(text.encode()).hexdigest()
        if self._engine is None or self._key != key:
            self._engine = None  # free the old one first: two would need twice the memory
            self._engine = device_engine(order, equipment)
            self._key = key
        return self._engine


def device_engine(order: Order, equipment: Equipment) -> Engine:
    """The engine for an order."""
    asked = config.build(tomllib.loads(order.experiment))
    if not equipment.simulated:
        check_order(asked, equipment.models)
    dataset, held = _data(asked, order, equipment)
    channels = dataset.train.images.shape[-1]
    if not equipment.simulated:
        check_work(asked, int(held.sizes[order.task.device]))
        check_size(asked, channels, dataset.classes, len(order.start))
    local = asked.model_copy(update={"engine": asked.flower.device_engine, "threads": 1})
    with trusting(filter(None, map(module_of, equipment.models))):
        network = build(
            asked.model.name,
            asked.model.options,
            in_channels=channels,
            classes=dataset.classes,
            widths=asked.model.widths,
            initialisation=asked.model.initialisation,
            seed=asked.seed,
        )
    return choose(Workload(local, replace(dataset, moments=order.moments), held), network).engine


def _data(asked: Experiment, order: Order, equipment: Equipment) -> tuple[Dataset, Partition]:
    """The device's data and the partition."""
    devices = asked.federation.devices
    if not 0 <= order.task.device < devices:
        raise RequestError(f"there is no device {order.task.device} among {devices}")
    if asked.data.partition == "own":
        if equipment.data_dir is None:
            raise RequestError(
                'data.partition = "own" needs a folder: give the node data-dir="..."'
            )
        dataset = load(str(equipment.data_dir), one_device=True)
        return dataset, all_of_one(len(dataset.train), order.task.device, devices)
    section = asked.data if equipment.simulated else _here(asked.data, equipment.data_dir)
    dataset = load_section(section)
    if dataset.checksum != order.data_sha256:
        raise RequestError(
            f"this device's {dataset.name} data differ from the server's (checksum "
            f"{dataset.checksum[:12]}); give its node the data-dir with the same files"
        )
    train = dataset.train
    return dataset, partition(train.labels, devices, section, asked.seed, holders=train.holders)


def _here(section: DataSection, data_dir: Path | None) -> DataSection:
    """The section with this device's folders, as the server's order names none."""
    if section.dataset in NAMED:
        return section.model_copy(update={"dir": data_dir})
    if data_dir is None:
        raise RequestError(
            f"this device does not find the server's dataset {section.dataset!r} by its name; "
            'give the node data-dir="..." with the same files'
        )
    return section.model_copy(update={"dataset": str(data_dir), "dir": None})


def measured_gain(path: Path) -> float:
    """The power gain in a file that contains one number."""
    try:
        return float(path.read_text())
    except (OSError, ValueError) as error:
        raise RequestError(f"{path} has no measured gain: {error}") from None


def check_order(experiment: Experiment, models: Collection[str]) -> None:
    """Refuse an order that this device must not follow; the message is sent to the server."""
    name = experiment.model.name
    if name not in MODELS and name not in models:
        raise RequestError(
            f"this device does not accept model {name!r}; to allow it, add that name to models in "
            "its node config (MODELS in device.env)"
        )
    for key, value in _numbers(experiment.model_dump(exclude={"seed"})):
        if abs(value) > MOST:
            raise RequestError(f"this device does not accept {key} = {value}: it is above {MOST}")
    if len(experiment.model.widths) > MOST_WIDTHS:
        raise RequestError(f"this device does not accept more than {MOST_WIDTHS} widths")


def check_work(experiment: Experiment, samples: int) -> None:
    """Refuse an order to train on more images than a device can list in memory."""
    images = most_images(experiment.training, samples)
    if images > MOST:
        raise RequestError(
            f"this device does not train on {images} images in one round; lower training.steps or "
            f"training.epochs so that there are at most {MOST}"
        )


def check_size(experiment: Experiment, channels: int, classes: int, parameters: int) -> None:
    """Refuse options that make a built-in network larger than the model sent with them.

    The network is first built without memory for its weights, so options alone cannot fill the
    memory.

    Args:
        experiment: What the server ordered.
        channels: Of this device's images.
        classes: Of its data.
        parameters: Number of those that the server sent.
    """
    model = experiment.model
    if model.name not in MODELS:
        return
    offered = {"in_channels": channels, "classes": classes, "widths": model.widths}
    with torch.device("meta"):
        network = construct(
            "model", model.name, MODELS[model.name], model.options, offered, key="model.options"
        )
    size = sum(one.numel() for one in network.parameters())
    if size != parameters:
        raise RequestError(
            f"model {model.name!r} has {size} parameters with these options and the server sent "
            f"{parameters}"
        )


def _numbers(tree: Any, key: str = "") -> Iterator[tuple[str, int]]:
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from _numbers(value, f"{key}.{name}" if key else str(name))
    elif isinstance(tree, list | tuple):
        for value in tree:
            yield from _numbers(value, key)
    elif isinstance(tree, int):
        yield key, tree
