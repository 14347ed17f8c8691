"""The state that a method or a channel keeps between rounds, in a form that checkpoints store."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimfl.errors import RequestError
from slimfl.methods import State

Shapes = dict[str, tuple[int, ...]]

#: Booleans, integers and floats: the kinds that every version of safetensors stores.
STORED_KINDS = "biuf"


def shapes(state: State) -> Shapes:
    """The shape of every array."""
    return {name: value.shape for name, value in state.items()}


def is_stored(array: NDArray[Any]) -> bool:
    """True if a checkpoint can store an array."""
    return array.dtype.kind in STORED_KINDS and array.dtype.itemsize <= 8


def checked_state(part: str, state: Mapping[str, Any], before: State | None = None) -> State:
    """A part's state; refused if no checkpoint can store it.

    Names and shapes must not change from round to round, so that the checkpoint of another run is
    recognised. The arrays are laid out in C order: safetensors ignores that an array is transposed.
    """
    if not isinstance(state, Mapping) or not all(isinstance(name, str) for name in state):
        raise RequestError(f"the state of {part} is not a dictionary with names as keys")
    arrays = {name: np.asarray(value, order="C") for name, value in state.items()}
    for name, array in arrays.items():
        if not is_stored(array):
            raise RequestError(
                f"the state of {part} has {name!r} of type {array.dtype}, which checkpoints cannot "
                "store; use whole or real numbers of at most 64 bits (two arrays for complex "
                "numbers)"
            )
    if before is not None and shapes(arrays) != shapes(before):
        raise RequestError(
            f"the state of {part} was {shapes(before)} and is now {shapes(arrays)}; keep names and "
            "shapes the same in all rounds"
        )
    return arrays
