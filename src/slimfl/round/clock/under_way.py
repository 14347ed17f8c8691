"""Asynchronous rounds in a checkpoint, and whether they are plausible.

A checkpoint may come from a stranger: what passes here has the shapes, devices and models of its
run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimfl.methods import Assignment
from slimfl.round.clock.flights import misfit

#: Prefixes of array names: devices at work, and uploads that wait in a buffer.
AT_WORK, WAITING = "work/", "waiting/"


def problem(
    arrays: dict[str, NDArray[Any]],
    state: dict[str, Any],
    parameters: int,
    widths: int,
    devices: int,
) -> str | None:
    """What is wrong with a checkpoint of asynchronous rounds; None if it fits."""
    for prefix in (AT_WORK, WAITING):
        wrong = misfit(under(prefix, arrays), parameters, widths, devices)
        if wrong is not None:
            return wrong
    rest = {name: each for name, each in arrays.items() if not name.startswith((AT_WORK, WAITING))}
    waiting = len(arrays[f"{WAITING}reason"])
    steps = rest.get("steps", np.zeros(0))
    expected = {
        "parts": ((waiting, widths), "b"),
        "steps": ((len(steps) if steps.ndim == 1 else -1,), "i"),
        "models": ((len(steps) if steps.ndim == 1 else -1, parameters), "f"),
        "begun": ((devices,), "i"),
        "buffers": ((2, widths), "i"),
    }
    if {name: (each.shape, each.dtype.kind) for name, each in rest.items()} != expected:
        return "its asynchronous state has arrays of another shape"
    known = {*steps.tolist()}
    for prefix in (AT_WORK, WAITING):
        if not {*arrays[f"{prefix}whole"][:, 2].tolist()} <= known:
            return "a device at work began with a model that is not there"
    if not np.isfinite(rest["models"]).all():
        return "one of its models holds a NaN or an infinity"
    at_work = arrays[f"{AT_WORK}whole"][:, 0].tolist()
    if len({*at_work}) < len(at_work):
        return "a device is at work twice"
    count = len(arrays[f"{AT_WORK}reason"]) + waiting
    if not _are_assignments(state.get("assigned"), count, widths):
        return "it does not say what its devices were to do"
    for key in ("moments", "landed"):
        if type(state.get(key)) is not int or not 0 <= state[key] < 2**62:
            return f"it does not say its {key}"
    return None


def under(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays with a prefix, without it."""
    return {
        name.removeprefix(prefix): each for name, each in arrays.items() if name.startswith(prefix)
    }


def plain(given: Assignment) -> list[Any]:
    """The part of an assignment that is still needed once the device has trained."""
    return [list(given.widths), [list(each) for each in given.messages], given.visit]


def assignment(widths: list[int], messages: list[list[int]], visit: str = "all") -> Assignment:
    """The inverse of `plain`; older checkpoints do not say how widths are visited."""
    return Assignment(tuple(widths), tuple(map(tuple, messages)), visit=visit)


def _are_assignments(found: Any, count: int, widths: int) -> bool:
    def indices(values: Any) -> bool:
        return isinstance(values, list) and all(
            type(value) is int and 0 <= value < widths for value in values
        )

    return (
        isinstance(found, list)
        and len(found) == count
        and all(
            isinstance(each, list)
            and len(each) in (2, 3)
            and indices(each[0])
            and isinstance(each[1], list)
            and all(map(indices, each[1]))
            and 0 < len(each[1]) <= widths
            and all(isinstance(visit, str) for visit in each[2:])
            for each in found
        )
    )
