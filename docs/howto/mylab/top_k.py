"""A stage that sends only the largest changes of every segment: fewer bits, less airtime."""

import math
from dataclasses import dataclass

import numpy as np

from slimfl.nn import Segments
from slimfl.round import Plan, Stage, Upload


@dataclass
class TopK(Stage):
    """Top-k sparsification: a change is sent as its value and its place in the segment.

    What is not sent counts as no change. For methods that train the leading channels.
    """

    segments: Segments
    share: float = 0.1
    """Part of the parameters of a segment that is sent."""

    def kept(self, parameters: int) -> int:
        """Number of parameters of a segment that are sent."""
        return max(1, round(self.share * parameters))

    def bits(self, parameters: int, bits: float) -> float:
        """A value and its place for each of the kept parameters."""
        value, place = bits / parameters, math.ceil(math.log2(parameters))
        return self.kept(parameters) * (value + place)

    def encode(self, upload: Upload, plan: Plan) -> None:
        """On the device: leave out all but the largest changes of each segment."""
        assert upload.parameters is not None
        change = np.abs(upload.parameters - plan.model)
        sent = plan.model.copy()
        for segment in upload.sent:
            where = self.segments.positions[segment]
            largest = where[np.argsort(-change[where], kind="stable")[: self.kept(len(where))]]
            sent[largest] = upload.parameters[largest]
        upload.parameters = sent
