"""Devices at work in asynchronous mode: the task of each, and what it will deliver.

A device trains when its task begins, from the current model. The result is computed at once and
kept until the upload ends, so memory grows with the number of devices that work at the same time,
and a checkpoint contains all work in progress.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimfl.methods import Assignment
from slimfl.nn import Vector

Arrays = dict[str, NDArray[Any]]

#: The integer and the floating-point columns in a checkpoint.
_WHOLE = ("device", "number", "step", "decoded", "attempts", "samples")
_REAL = (
    "ends_s", "finished_s", "gain", "noise_to_power", "power_dbm", "airtime_s", "energy_j",
    "compute_j", "used_j", "weight",
)  # fmt: skip
#: Why a task delivers nothing, or less; the empty string if it does deliver.
REASONS = ("", "offline", "no answer", "battery", "refused", "clipped")


@dataclass(frozen=True, eq=False)
class Flight:
    """One device's task, from its beginning to the end of its upload."""

    device: int
    number: int
    """The device's count of tasks, this one included; used as the round of its randomness."""
    step: int
    """Number of merges before it began, which identifies the model that it started from."""
    assignment: Assignment
    """What the device trains and sends."""
    ends_s: float
    """End of the upload on the run's clock."""
    finished_s: float
    """End of the upload since the task began."""
    reason: str
    versions: tuple[int, ...]
    """Version of every segment in the model that the device started from."""
    compute_j: float
    used_j: float
    gain: float = 0.0
    noise_to_power: float = 0.0
    power_dbm: float = 0.0
    decoded: int = 0
    attempts: int = 0
    airtime_s: float = 0.0
    energy_j: float = 0.0
    samples: int = 0
    weight: float = 0.0
    losses: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    images_seen: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    parameters: Vector | None = None
    """As they arrive; None if nothing usable does."""

    @property
    def order(self) -> tuple[float, int]:
        """Sort key of events: time, then device."""
        return self.ends_s, self.device

    @property
    def trained(self) -> bool:
        """True if the device completed its work."""
        return self.reason in ("", "refused", "clipped")


def packed(flights: list[Flight], parameters: int, widths: int) -> Arrays:
    """Flights as arrays for a checkpoint."""
    count = len(flights)
    losses, images = np.full((count, widths), np.nan), np.zeros((count, widths), np.int64)
    for row, each in enumerate(flights):
        if each.trained:
            losses[row], images[row] = each.losses, each.images_seen
    held = [each.parameters for each in flights if each.parameters is not None]
    return {
        "whole": np.array([[getattr(f, n) for n in _WHOLE] for f in flights], np.int64).reshape(
            count, len(_WHOLE)
        ),
        "real": np.array([[getattr(f, n) for n in _REAL] for f in flights], np.float64).reshape(
            count, len(_REAL)
        ),
        "reason": np.array([REASONS.index(f.reason) for f in flights], np.int64),
        "versions": np.array([f.versions for f in flights], np.int64).reshape(count, widths),
        "losses": losses,
        "images": images,
        "holds": np.array([f.parameters is not None for f in flights], np.bool_),
        "parameters": np.array(held, np.float32).reshape(len(held), parameters),
    }


def unpacked(arrays: Arrays, assignments: Iterable[Assignment]) -> list[Flight]:
    """The inverse of `packed`, once `misfit` has found nothing wrong."""
    held = iter(arrays["parameters"])
    return [
        Flight(
            **dict(zip(_WHOLE, whole, strict=True)),
            **dict(zip(_REAL, real, strict=True)),
            assignment=assignment,
            reason=REASONS[reason],
            versions=tuple(versions),
            losses=losses,
            images_seen=images,
            parameters=np.array(next(held)) if holds else None,
        )
        for whole, real, reason, versions, losses, images, holds, assignment in zip(
            arrays["whole"].tolist(),
            arrays["real"].tolist(),
            arrays["reason"].tolist(),
            arrays["versions"].tolist(),
            arrays["losses"],
            arrays["images"],
            arrays["holds"].tolist(),
            assignments,
            strict=False,  # callers may pass further assignments
        )
    ]


def misfit(arrays: Arrays, parameters: int, widths: int, devices: int) -> str | None:
    """What is wrong with the flights of a checkpoint; None if they fit."""
    expected = packed([], parameters, widths)
    if arrays.keys() != expected.keys():
        return "its devices at work are not all there"
    count = len(arrays["reason"]) if arrays["reason"].ndim == 1 else -1
    for name, empty in expected.items():
        rows = count if name != "parameters" else int(arrays["holds"].sum())
        if arrays[name].shape != (rows, *empty.shape[1:]) or arrays[name].dtype != empty.dtype:
            return f"its devices at work have an array {name!r} of another shape"
    ids, real = arrays["whole"][:, 0], arrays["real"]
    if (arrays["whole"] < 0).any() or (ids >= devices).any():
        return "a device at work is none of this run"
    if not ((arrays["reason"] >= 0) & (arrays["reason"] < len(REASONS))).all():
        return "a device at work has a reason that there is not"
    times = real[:, : _REAL.index("gain")]
    if not (np.isfinite(times) & (times >= 0)).all() or np.isnan(real[:, 4:]).any():
        return "a device at work has no time"
    if not np.isfinite(arrays["parameters"]).all():
        return "a device at work holds a NaN or an infinity"
    return None
