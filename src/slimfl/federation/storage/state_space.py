"""How much disk the states of many devices take, said before a run begins."""

import math
import shutil
import tempfile
from pathlib import Path

from slimfl.config import Experiment
from slimfl.engines.device_states import MODEL
from slimfl.population.participation import round_half_up
from slimfl.training import state_shapes

#: Less than this is not worth a word.
WARN_BYTES = 10**9


def kept_shapes(experiment: Experiment, parameters: int) -> dict[str, tuple[int, ...]]:
    """The arrays that a device keeps once it has trained."""
    shapes = state_shapes(experiment.training, parameters)
    keeps_model = experiment.radio.downlink_missed == "own-model"
    return shapes | ({MODEL: (parameters,)} if keeps_model else {})


def states_bytes(experiment: Experiment, parameters: int) -> int:
    """What all devices that a run can ask keep between rounds."""
    section = experiment.federation
    asked = max(1, round_half_up(section.participation * section.devices))
    shapes = kept_shapes(experiment, parameters)
    return min(section.devices, asked * experiment.rounds) * sum(
        4 * math.prod(shape) for shape in shapes.values()
    )


def disk_bytes(experiment: Experiment, parameters: int) -> int:
    """What the files of these states take at most.

    Up to half of what is in them is out of date, and what the devices of one checkpoint replace
    stays for the two before it.
    """
    section = experiment.federation
    replaced = min(1.0, section.participation * section.checkpoint_every)
    return int((2 + 2 * replaced) * states_bytes(experiment, parameters))


def space_warning(experiment: Experiment, parameters: int, folder: Path | None) -> str | None:
    """A sentence where the states take much disk; None otherwise."""
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
