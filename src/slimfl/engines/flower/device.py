"""The device's side: do the work of an order with an engine of this process."""

import hashlib
import json
import threading
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from slimfl import config
from slimfl.data import SOURCES, all_of_one, load, load_section, partition
from slimfl.engines.base import Engine, Update, Workload
from slimfl.engines.choose import choose
from slimfl.engines.flower.messages import Answer, Order, digest
from slimfl.errors import RequestError
from slimfl.nn import build


@dataclass(frozen=True)
class Equipment:
    """What a device brings along, from the configuration of its node."""

    number: int | None = None
    """Which device it is; None where the server assigns that."""
    data_dir: Path | None = None
    """Its data: where a named dataset's files are, or its own four idx files."""
    gain_file: Path | None = None
    """A file in which its radio keeps the power gain that it measured last."""


class Workbench:
    """The engine that a device computes with; kept as long as the experiment stays the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key = ""
        self._engine: Engine | None = None

    def work(self, order: Order, equipment: Equipment) -> Answer:
        """Train as ordered."""
        device = order.task.device
        if not order.assigned and equipment.number != device:
            raise RequestError(
                f"this node is device {equipment.number} and was asked as device {device}; give it "
                f"partition-id={device}, or register its key under its own name"
            )
        with self._lock:
            engine = self._engine_for(order, equipment)
            engine.restore_device_states({f"{device}/{k}": v for k, v in order.state.items()})
            (update,) = engine.train(order.round, order.start, [order.task])
            assert isinstance(update, Update)
            state = {
                name.removeprefix(f"{device}/"): value
                for name, value in engine.device_states().items()
            }
        if equipment.gain_file is not None:
            update = replace(update, gain=measured_gain(equipment.gain_file))
        return Answer(order.round, update, digest(order.start), state)

    def _engine_for(self, order: Order, equipment: Equipment) -> Engine:
        moments = [array.tolist() for array in order.moments]
        # in a simulation one process plays many devices, and all work on one dataset
        who = None if order.assigned else order.task.device
        text = json.dumps([order.experiment, str(equipment.data_dir), moments, who])
        key = hashlib.sha256(text.encode()).hexdigest()
        if self._engine is None or self._key != key:
            self._engine = None  # two at once would need twice the memory
            self._engine = device_engine(order, equipment.data_dir)
            self._key = key
        return self._engine


def device_engine(order: Order, data_dir: Path | None) -> Engine:
    """The engine that the device of an order computes with."""
    asked = config.build(tomllib.loads(order.experiment))
    own = asked.data.partition == "own"
    section = asked.data
    if data_dir is not None:
        where = "dir" if section.dataset in (*SOURCES, "synthetic") else "dataset"
        section = section.model_copy(update={where: data_dir if where == "dir" else str(data_dir)})
    if own:
        if data_dir is None:
            raise RequestError(
                'data.partition = "own" needs a folder: give the node data-dir="..."'
            )
        dataset = load(str(data_dir))
        held = all_of_one(len(dataset.train), order.task.device, asked.federation.devices)
    else:
        dataset = load_section(section)
        if dataset.checksum != order.data_sha256:
            raise RequestError(
                f"this device has other {dataset.name} data than the server (checksum "
                f"{dataset.checksum[:12]}); give its node the data-dir with the same files"
            )
        held = partition(dataset.train.labels, asked.federation.devices, section, asked.seed)
    local = asked.model_copy(update={"engine": asked.flower.device_engine, "threads": 1})
    network = build(
        asked.model.name,
        asked.model.options,
        in_channels=dataset.train.images.shape[-1],
        classes=dataset.classes,
        initialisation=asked.model.initialisation,
        seed=asked.seed,
    )
    return choose(Workload(local, replace(dataset, moments=order.moments), held), network).engine


def measured_gain(path: Path) -> float:
    """The power gain in a file, which is one number."""
    try:
        return float(path.read_text())
    except (OSError, ValueError) as error:
        raise RequestError(f"{path} holds no measured gain: {error}") from None
