"""Segment-wise aggregation: equation (6) with the three cases of algorithm 2.

Each segment is averaged over the devices that delivered it. Updates stream into running sums, so
the server's memory does not grow with the number of devices.
"""

from collections.abc import Iterable

import numpy as np

from slimfl.nn import Segments, Vector


class RefusedUpdateError(Exception):
    """An update that must not enter the average; says why."""


def check_update(parameters: Vector, expected: int) -> None:
    """Refuse an update of the wrong shape, or with a NaN or an infinity."""
    if parameters.shape != (expected,):
        raise RefusedUpdateError(f"has shape {parameters.shape}, not ({expected},)")
    if not np.isfinite(parameters).all():
        raise RefusedUpdateError("holds a NaN or an infinity")


class SegmentAverage:
    """A running average of every segment over the devices that delivered it."""

    def __init__(self, segments: Segments, last: Vector, missing: str = "keep") -> None:
        self.segments, self.last, self.missing = segments, last, missing
        # float64: the sum of many float32 values must not depend on how many came before
        self.sums = np.zeros(len(last), np.float64)
        self.weights = np.zeros(len(segments.widths), np.float64)

    def add(self, parameters: Vector, delivered: Iterable[int], weight: float = 1.0) -> None:
        """Add the segments that a device delivered; raises `RefusedUpdateError` on a bad update."""
        check_update(parameters, len(self.last))
        arrived = list(delivered)
        if len(arrived) == len(self.weights):
            self.sums += weight * parameters.astype(np.float64)
        else:
            for segment in arrived:
                where = self.segments.positions[segment]
                self.sums[where] += weight * parameters[where].astype(np.float64)
        self.weights[arrived] += weight

    def result(self) -> Vector:
        """The new global model.

        A segment that nobody delivered keeps its last value; with `missing="zero"` it becomes zero
        when another segment did arrive, which is case 2 of algorithm 2 read literally (erratum E3).
        Nothing delivered at all leaves the model as it was (case 3).
        """
        if not self.weights.any():
            return self.last.copy()
        model = self.last.copy() if self.missing == "keep" else np.zeros_like(self.last)
        for segment, weight in enumerate(self.weights):
            if weight > 0:
                where = self.segments.positions[segment]
                model[where] = (self.sums[where] / weight).astype(np.float32)
        return model
