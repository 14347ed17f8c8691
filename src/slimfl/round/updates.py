"""Refusal of updates that must not enter a model."""

import numpy as np

from slimfl.nn import Vector


class RefusedUpdateError(Exception):
    """An update that must not enter the average, and why."""


def check_update(parameters: Vector, expected: int) -> None:
    """Refuse an update of the wrong shape, or with a NaN or an infinity."""
    if parameters.shape != (expected,):
        raise RefusedUpdateError(f"has shape {parameters.shape}, not ({expected},)")
    if not np.isfinite(parameters).all():
        raise RefusedUpdateError("holds a NaN or an infinity")
