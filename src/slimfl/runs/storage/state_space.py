"""How much disk the states of many devices take, reported before a run begins."""

import math
import shutil
import tempfile
from pathlib import Path

from slimfl.devices.participation import round_half_up
from slimfl.engines.device_states import MODEL
from slimfl.experiment import Experiment
from slimfl.training import state_shapes

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
