"""The state of an optimiser as plain arrays: what a device keeps between rounds."""

import numpy as np
from numpy.typing import NDArray

from slimfl.experiment import TrainingSection

#: Arrays under PyTorch's own names.
OptimiserState = dict[str, NDArray[np.float32]]


def state_shapes(section: TrainingSection, parameters: int) -> dict[str, tuple[int, ...]]:
    """The arrays of a device's state after its first step, for a model of that size."""
    if section.optimiser_state == "fresh":
        return {}
    if section.optimiser == "adam":
        return {"step": (), "exp_avg": (parameters,), "exp_avg_sq": (parameters,)}
    return {"momentum_buffer": (parameters,)} if section.momentum else {}
