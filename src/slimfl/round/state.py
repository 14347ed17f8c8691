"""All that changes from round to round, and its checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from slimfl.errors import RequestError
from slimfl.methods import State, Work
from slimfl.nn import Vector, flatten
from slimfl.radio import GainBelief, noise_to_power
from slimfl.round.clock import Batteries
from slimfl.round.parts import Kept, LastModels, LastSegments, Layout, Part, fits, layout
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
from slimfl.runs.storage.state_space import kept_shapes

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
        self.last_models = LastModels(experiment.federation.average_last, len(self.model))
        self.last_segments: LastSegments | None = None
        if experiment.federation.absent == "stale":
            self.last_segments = LastSegments(len(self.model))
        self.asynchronous: Asynchronous | None = None
        if experiment.radio.downlink_missed == "own-model":
            setting.engine.states.first_model = self.model.copy()
        self._fresh: dict[str, Layout] = {}

    def begin(self) -> None:
        """Called before the first round: note what a checkpoint of this run looks like."""
        self._fresh = {name: layout(part.state()) for name, part in self.parts.items()}

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
        """Continue from a checkpoint; one of another run is refused, before anything changes."""
        check_made_with(checkpoint, self.setting.experiment, self.setting.dataset.checksum)
        tensors = _of_today(checkpoint)
        model, clock_s = tensors.pop("global", None), checkpoint.state.get("clock_s", 0.0)
        if model is None or layout({"": model}) != layout({"": self.model}):
            raise does_not_fit(checkpoint)
        found: dict[str, State] = {}
        for path, array in tensors.items():
            prefix, _, key = path.partition("/")
            found.setdefault(prefix, {})[key] = array
        devices = found.pop("device", {})
        for name, expected in self._fresh.items():
            if not fits(layout(found.get(name, {})), expected):
                raise does_not_fit(checkpoint, name)
        if not found.keys() <= self._fresh.keys() or type(clock_s) is not float:
            raise does_not_fit(checkpoint)
        name = ""
        try:
            for name, part in self.parts.items():
                part.restore(found.get(name, {}))
            name = "devices"
            self._restore_devices(checkpoint, devices)
        except (ValueError, IndexError, KeyError, TypeError):
            raise does_not_fit(checkpoint, name) from None
        self.round, self.model, self.clock_s = checkpoint.round, model, clock_s

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
        if any(not 0 <= device < count or shapes != per_device for device, shapes in found):
            raise ValueError("these are no states of this run's devices")
        if any(value.dtype != np.float32 for value in arrays.values()):
            raise ValueError("states of devices have 32 bits")
        states = self.setting.engine.states
        if checkpoint.device_files:
            states.reopen(checkpoint.device_files)
        else:
            states.restore(arrays)


def _of_today(checkpoint: Checkpoint) -> Tensors:
    """The arrays of a checkpoint; version 0.1 kept those of two parts as text beside them."""
    tensors, state = dict(checkpoint.tensors), checkpoint.state
    try:
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
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, RequestError):
        raise does_not_fit(checkpoint) from None
    return tensors
