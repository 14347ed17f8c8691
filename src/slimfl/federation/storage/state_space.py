"""How much disk the optimiser states of many devices take, reported before a run begins."""

import math
import shutil
import tempfile
from pathlib import Path

from slimfl.config import Experiment
from slimfl.population.participation import round_half_up
from slimfl.training import state_shapes

#: Below this size there is no warning.
WARN_BYTES = 10**9


def states_bytes(experiment: Experiment, parameters: int) -> int:
    """Size of what all devices that a run can ask keep between rounds."""
    section = experiment.federation
    asked = max(1, round_half_up(section.participation * section.devices))
    shapes = state_shapes(experiment.training, parameters)
    return min(section.devices, asked * experiment.rounds) * sum(
        4 * math.prod(shape) for shape in shapes.values()
    )


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
        f"the devices keep {held / 1e9:.1f} GB of optimiser states, which takes up to "
        f"{disk_bytes(experiment, parameters) / 1e9:.1f} GB in {place} ({free / 1e9:.1f} GB are "
        "free); "
        'training.optimiser_state = "fresh" keeps none'
    )
