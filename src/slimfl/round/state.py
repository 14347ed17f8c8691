"""All that changes from round to round, and its checkpoint."""

from __future__ import annotations

import math
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from slimfl.devices.participation import round_half_up
from slimfl.engines.device_states import MODEL
from slimfl.errors import RequestError
from slimfl.experiment import Experiment
from slimfl.methods import State, Work
from slimfl.nn import Vector, flatten
from slimfl.radio import GainBelief, noise_to_power
from slimfl.round.clock import Batteries
from slimfl.round.parts import Kept, LastModels, LastSegments, Part
from slimfl.round.setting import Setting
from slimfl.round.uploads import work_rows
from slimfl.runs.storage.checkpoint import (
    Checkpoint,
    Tensors,
    check_made_with,
    device_files_state,
    does_not_fit,
    made_with,
)
from slimfl.training import state_shapes

if TYPE_CHECKING:
    from slimfl.round.asynchronous import Asynchronous


class RunState:
    """The global model, the clock, and the stateful parts of a run."""

    def __init__(self, setting: Setting) -> None:
        self.setting, experiment = setting, setting.experiment
        self.round = 0
        self.clock_s = 0.0
        """Virtual time since the run began."""
        self.model: Vector = flatten(setting.network)
        self.method = Kept(f"method {setting.method.name!r}", setting.method.start(self.model))
        self.channel = Kept(
            f"channel {type(setting.channel).__name__}",
            setting.channel.start(setting.population, experiment.seed),
        )
        self.batteries = Batteries(setting.population.battery_j)
        self.belief: GainBelief | None = None
        if experiment.radio.split == "learned":
            radio = experiment.radio
            self.belief = GainBelief(
                len(setting.population), noise_to_power(radio), radio.split_drift_db
            )
        self.last_models: LastModels | None = None
        if experiment.federation.average_last:
            self.last_models = LastModels(experiment.federation.average_last, len(self.model))
        self.last_segments: LastSegments | None = None
        if experiment.federation.absent == "stale":
            self.last_segments = LastSegments(len(self.model))
        self.asynchronous: Asynchronous | None = None
        if experiment.radio.downlink_missed == "own-model":
            setting.engine.states.first_model = self.model.copy()

    @property
    def parts(self) -> dict[str, Part]:
        """Everything that a checkpoint stores besides the model, by the prefix of its arrays."""
        named: dict[str, Part | None] = {
            "method": self.method,
            "channel": self.channel,
            "clock": self.batteries,
            "belief": self.belief,
            "average": self.last_models,
            "last": self.last_segments,
            "flight": self.asynchronous,
            "privacy": self.setting.privacy,
        }
        own = (each for each in self.setting.stages if each is not self.setting.privacy)
        named |= {f"stage-{number}": stage for number, stage in enumerate(own)}
        return {name: part for name, part in named.items() if part is not None}

    def checkpoint(self) -> Checkpoint:
        """All of it, for a checkpoint."""
        tensors: Tensors = {"global": self.model}
        for name, part in self.parts.items():
            tensors |= {f"{name}/{key}": value for key, value in part.state().items()}
        values = made_with(self.setting.experiment, self.setting.dataset.checksum)
        values["clock_s"] = self.clock_s
        states = self.setting.engine.states
        if states.folder is None or states.small:
            tensors |= {f"device/{key}": value for key, value in states.export().items()}
        else:
            values |= device_files_state(states.save())
        return Checkpoint(self.round, tensors, values)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint; one of another run is refused."""
        check_made_with(checkpoint, self.setting.experiment, self.setting.dataset.checksum)
        found: dict[str, State] = {}
        name = "model"
        try:
            for path, array in _of_today(checkpoint).items():
                prefix, _, key = path.partition("/")
                found.setdefault(prefix, {})[key] = array
            model = found.pop("global")[""]
            if (model.shape, model.dtype) != (self.model.shape, self.model.dtype):
                raise ValueError("it is of another network")
            for name, part in self.parts.items():
                part.restore(found.pop(name, {}))
            name = "devices"
            self._restore_devices(checkpoint, found.pop("device", {}))
            self.clock_s = float(checkpoint.state.get("clock_s", 0.0))
            if found:
                name = ", ".join(found)
                raise ValueError("this run has no such part")
        except (ValueError, IndexError, KeyError, TypeError, OverflowError, RequestError) as error:
            raise does_not_fit(checkpoint, name) from error
        self.round, self.model = checkpoint.round, model

    def _restore_devices(self, checkpoint: Checkpoint, arrays: State) -> None:
        """What devices keep between rounds: in the checkpoint itself, or in files beside it."""
        count = self.setting.experiment.federation.devices
        per_device = kept_shapes(self.setting.experiment, len(self.model))
        held: dict[int, State] = {}
        for key, value in arrays.items():
            device, _, name = key.partition("/")
            held.setdefault(int(device), {})[name] = value
        found = [(device, {n: v.shape for n, v in state.items()}) for device, state in held.items()]
        for _, (devices, shapes) in checkpoint.device_files:
            found += [(device, shapes) for device in devices.tolist()]
        known = all(0 <= device < count and shapes == per_device for device, shapes in found)
        if not known or any(value.dtype != np.float32 for value in arrays.values()):
            raise ValueError("these are no states of this run's devices")
        states = self.setting.engine.states
        if checkpoint.device_files:
            states.reopen(checkpoint.device_files)
        else:
            states.restore(arrays)


def _of_today(checkpoint: Checkpoint) -> Tensors:
    """The arrays of a checkpoint; version 0.1 kept those of two parts as text beside them."""
    tensors, state = dict(checkpoint.tensors), checkpoint.state
    if "heard" in state:
        tensors["privacy/heard"] = np.array(state["heard"], np.int64)
        tensors["privacy/released"] = np.array(state.get("released", 0), np.int64)
    if "asynchronous" in state:
        given = state["asynchronous"]
        assigned = [(*each, "all")[:3] for each in given["assigned"]]
        widths, at_work = tensors["flight/buffers"].shape[1], len(tensors["flight/work/reason"])
        for prefix, some in (("work", slice(at_work)), ("waiting", slice(at_work, None))):
            work = [Work(tuple(w), tuple(map(tuple, m)), visit=v) for w, m, v in assigned[some]]
            tensors[f"flight/{prefix}/given"] = work_rows(work, widths)
        tensors["flight/moments"] = np.array(given["moments"], np.int64)
    return tensors


#: Below this size there is no warning.
WARN_BYTES = 10**9


def kept_shapes(experiment: Experiment, parameters: int) -> dict[str, tuple[int, ...]]:
    """The arrays that a device keeps once it has trained."""
    shapes = state_shapes(experiment.training, parameters)
    keeps_model = experiment.radio.downlink_missed == "own-model"
    return shapes | ({MODEL: (parameters,)} if keeps_model else {})


def states_bytes(experiment: Experiment, parameters: int) -> int:
    """Size of what all devices that a run can ask keep between rounds."""
    shapes = kept_shapes(experiment, parameters)
    return taking_part(experiment) * sum(4 * math.prod(shape) for shape in shapes.values())


def taking_part(experiment: Experiment) -> int:
    """How many devices a run can ask at most."""
    section = experiment.federation
    asked = max(1, round_half_up(section.participation * section.devices))
    return min(section.devices, asked * experiment.rounds)


def disk_bytes(experiment: Experiment, parameters: int) -> int:
    """Maximum size of the files with these states.

    Up to half of their content is outdated, and what one checkpoint replaces is kept for the two
    before it.
    """
    section = experiment.federation
    replaced = min(1.0, section.participation * section.checkpoint_every)
    return int((2 + 2 * replaced) * states_bytes(experiment, parameters))


def space_warning(experiment: Experiment, parameters: int, folder: Path | None) -> str | None:
    """A warning if the states take much disk; None otherwise."""
    held = states_bytes(experiment, parameters)
    if held < WARN_BYTES:
        return None
    place = folder.parent if folder else Path(tempfile.gettempdir())
    free = shutil.disk_usage(place).free
    return (
        f"the devices keep {held / 1e9:.1f} GB of states, which takes up to "
        f"{disk_bytes(experiment, parameters) / 1e9:.1f} GB in {place} ({free / 1e9:.1f} GB are "
        'free); training.optimiser_state = "fresh" keeps fewer'
    )
