"""Refusal of updates that must not enter a model, and a bound for those that may."""

import numpy as np

from slimfl.experiment import FederationSection
from slimfl.methods import Positions
from slimfl.nn import Vector

#: A change this many times larger than the bound is no training at all, and refused like infinity.
IMPLAUSIBLE = 1000


class RefusedUpdateError(Exception):
    """An update that must not enter the average, and why."""


def check_update(parameters: Vector, expected: int) -> None:
    """Refuse an update of the wrong shape, or with a NaN or an infinity."""
    if parameters.shape != (expected,):
        raise RefusedUpdateError(f"has shape {parameters.shape}, not ({expected},)")
    if not np.isfinite(parameters).all():
        raise RefusedUpdateError("holds a NaN or an infinity")


def bounded(
    parameters: Vector, model: Vector, where: Positions, section: FederationSection
) -> tuple[Vector, float]:
    """An update whose change of the model is within bounds, and the norm that its change had.

    An update within the bounds is returned as it is.
    """
    before = model[where]
    change = np.subtract(parameters[where], before, dtype=np.float64)
    largest, norm = float(np.abs(change).max(initial=0)), float(np.linalg.norm(change))
    if largest > IMPLAUSIBLE * section.clip_value or norm > IMPLAUSIBLE * section.clip_norm:
        raise RefusedUpdateError(
            f"changes the model by a norm of {norm:.3g} and one parameter by {largest:.3g}, which "
            "no training does"
        )
    if largest <= section.clip_value and norm <= section.clip_norm:
        return parameters, norm
    np.clip(change, -section.clip_value, section.clip_value, out=change)
    change *= min(1.0, section.clip_norm / float(np.linalg.norm(change)))
    parameters = parameters.copy()
    parameters[where] = before + change
    return parameters, norm
