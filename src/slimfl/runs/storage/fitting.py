"""Whether a checkpoint belongs to a run: the same settings and data, and arrays that fit."""

import json
import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimfl.errors import RequestError
from slimfl.experiment import OWN, Experiment, round_dependencies
from slimfl.experiment.naming import module_of
from slimfl.round.clock.under_way import problem as under_way_problem
from slimfl.round.last_segments import problem as last_segments_problem
from slimfl.runs.storage.checkpoint import Checkpoint, Tensors
from slimfl.runs.storage.part_state import Shapes, is_stored, shapes
from slimfl.runs.storage.state_space import kept_shapes

#: Key in a checkpoint's state for the values that its rounds depend on.
MADE_WITH = "made_with"

#: Prefixes of the arrays that a method, a channel, the clock or the belief keeps.
KEPT = ("method/", "channel/", "clock/", "belief/", "average/")

#: How the names of arrays begin that hold what arrived last of every device.
LAST_SEGMENTS = "last/"

_WAY_OUT = (
    "restore the original settings, start the changed experiment in a new folder with `slimfl "
    "run`, or delete the checkpoints to start over"
)


def made_with(experiment: Experiment, data_sha256: str) -> dict[str, Any]:
    """The values that the rounds of a run depend on, for its checkpoints.

    Data is identified by its contents, as the name of a dataset's folder may change.
    """
    values = round_dependencies(experiment)
    values.pop("data.dataset", None)
    values.pop("population.file", None)  # provenance has the checksum of its contents
    return {MADE_WITH: {**values, "data.sha256": data_sha256}}


def check_fits(
    checkpoint: Checkpoint,
    experiment: Experiment,
    data_sha256: str,
    parameters: int,
    kept: Shapes,
) -> None:
    """Refuse a checkpoint of another run; older versions can only be told by their shapes.

    `kept` are the arrays of method, channel and clock, such as `method/NAME`.
    """
    check_made_with(checkpoint, experiment, data_sha256)
    _check_arrays(checkpoint, experiment, parameters, kept)
    clock_s = checkpoint.state.get("clock_s", 0.0)
    if type(clock_s) is not float or not 0 <= clock_s < math.inf:
        raise _unfit(checkpoint, "its clock_s is not a time")
    left_j = checkpoint.tensors.get("clock/battery_left_j", np.zeros(0))
    if left_j.dtype != np.float64 or not (left_j >= 0).all():
        raise _unfit(checkpoint, "its battery charges are impossible")
    mean = checkpoint.tensors.get("belief/mean", np.zeros(0))
    variance = checkpoint.tensors.get("belief/variance", np.zeros(0))
    if not (np.isfinite(mean).all() and (variance > 0).all() and np.isfinite(variance).all()):
        raise _unfit(checkpoint, "its belief about the gains of devices is impossible")
    heard = checkpoint.state.get("heard")
    if experiment.privacy.clip_norm is not None and not _is_counts(
        heard, experiment.federation.devices
    ):
        raise _unfit(checkpoint, "it does not record how often each device was heard")


def check_made_with(checkpoint: Checkpoint, experiment: Experiment, data_sha256: str) -> None:
    """Refuse a checkpoint whose rounds were made with other settings or data."""
    here = made_with(experiment, data_sha256)[MADE_WITH]
    there = checkpoint.state.get(MADE_WITH, here)
    if not isinstance(there, dict):
        raise _unfit(checkpoint, "it does not record the settings it was made with")
    changes = [
        f"{key} was {_value(there, key)} and is {_value(here, key)}"
        for key in sorted({*here, *there})
        if _value(there, key) != _value(here, key)
    ]
    if changes:
        raise RequestError(
            f"the checkpoint of round {checkpoint.round} was made with settings that differ from "
            f"experiment.toml ({', '.join(changes)}); {_WAY_OUT}"
        )


def named_sizes(experiment: Experiment, classes: int) -> list[int]:
    """The numbers of parameters that the network can have with grey and with colour images.

    Empty if the network or the data are the user's own: only they know.
    """
    from slimfl.nn import build, flatten  # imports torch

    model = experiment.model
    own = (model.name, experiment.data.dataset)
    if OWN in own or any(module_of(name) is not None for name in own):
        return []
    networks = (
        build(model.name, model.options, in_channels=c, classes=classes, widths=model.widths)
        for c in (1, 3)
    )
    return [len(flatten(network)) for network in networks]


def _check_arrays(
    checkpoint: Checkpoint, experiment: Experiment, parameters: int, kept: Shapes
) -> None:
    tensors = dict(checkpoint.tensors)
    model = tensors.pop("global", None)
    if model is None or model.shape != (parameters,) or model.dtype != np.float32:
        found = "none" if model is None else f"one of shape {model.shape} ({model.dtype})"
        raise _unfit(checkpoint, f"the model has {parameters} parameters (float32); it has {found}")
    under_way = {name: tensors.pop(name) for name in list(tensors) if name.startswith("flight/")}
    if under_way or experiment.time.mode == "asynchronous":
        wrong = _under_way_problem(checkpoint, experiment, parameters, under_way)
        if wrong is not None:
            raise _unfit(checkpoint, wrong)
    last = {name: tensors.pop(name) for name in list(tensors) if name.startswith(LAST_SEGMENTS)}
    if last or experiment.federation.absent == "stale":
        plain = {name.removeprefix(LAST_SEGMENTS): value for name, value in last.items()}
        wrong = last_segments_problem(plain, parameters, experiment.federation.devices)
        if wrong is not None:
            raise _unfit(checkpoint, wrong)
    states = {name: tensors.pop(name) for name in list(tensors) if name.startswith(KEPT)}
    if shapes(states) != kept:
        there = shapes(states)
        raise _unfit(
            checkpoint,
            f"method, channel, clock and belief keep {kept or 'nothing'}; "
            f"it has {there or 'nothing'}",
        )
    for name, value in states.items():
        if not is_stored(value):
            raise _unfit(checkpoint, f"it has an unexpected array {name!r} ({value.dtype})")
    per_device = kept_shapes(experiment, parameters)
    devices_hold: dict[str, Shapes] = {}
    for key, value in tensors.items():
        device, _, name = key.removeprefix("device/").partition("/")
        if not key.startswith("device/") or value.dtype != np.float32:
            raise _unfit(checkpoint, f"it has an unexpected array {key!r} ({value.dtype})")
        devices_hold.setdefault(device, {})[name] = value.shape
    for device, held in devices_hold.items():
        if not re.fullmatch("[0-9]{1,9}", device) or int(device) >= experiment.federation.devices:
            raise _unfit(checkpoint, f"there is no device {device!r}")
        if held != per_device:
            raise _unfit(checkpoint, f"device {device} has {held} and should have {per_device}")
    for file, (devices, held) in checkpoint.device_files:
        if held != per_device:
            raise _unfit(checkpoint, f"{file.path.name} has {held} and should have {per_device}")
        if not _are_devices(devices, experiment.federation.devices):
            raise _unfit(checkpoint, f"{file.path.name} has devices that do not exist")


def _under_way_problem(
    checkpoint: Checkpoint, experiment: Experiment, parameters: int, arrays: Tensors
) -> str | None:
    """What is wrong with the work in progress of asynchronous devices; None if it fits."""
    state = checkpoint.state.get("asynchronous")
    if experiment.time.mode != "asynchronous" or not isinstance(state, dict):
        return "only asynchronous rounds have devices at work, and they all do"
    plain = {name.removeprefix("flight/"): value for name, value in arrays.items()}
    widths, devices = len(experiment.model.widths), experiment.federation.devices
    return under_way_problem(plain, state, parameters, widths, devices)


def _are_devices(devices: NDArray[np.int64], count: int) -> bool:
    return bool(((devices >= 0) & (devices < count)).all())


def _is_counts(heard: Any, devices: int) -> bool:
    return (
        isinstance(heard, list)
        and len(heard) == devices
        and all(type(count) is int and 0 <= count < 2**63 for count in heard)
    )


def _value(values: dict[str, Any], key: str) -> str:
    return json.dumps(values[key], sort_keys=True) if key in values else "the default"


def _unfit(checkpoint: Checkpoint, why: str) -> RequestError:
    return RequestError(
        f"the checkpoint of round {checkpoint.round} does not fit this run: {why}; {_WAY_OUT}"
    )
