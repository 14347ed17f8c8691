"""Averaging over all devices of a round, also those whose segment did not arrive.

Algorithm 2 divides by the number of devices that delivered a segment. An implementation that
divides by K instead counts the others as something: as the old global model, or as zero. This is
not what the paper writes; it is a reading that can be tried (`federation.absent`).
"""

import numpy as np

from slimfl.federation.merge import SegmentAverage
from slimfl.nn import Vector


def over_all(average: SegmentAverage, devices: int, absent: str) -> Vector:
    """The new global model as a mean over all `devices` of the round.

    A segment that nobody delivered is left to `federation.missing`.
    """
    model = average.result()
    for segment, arrived in enumerate(average.weights):
        if 0 < arrived < devices:
            where = average.segments.positions[segment]
            instead = average.last[where].astype(np.float64) if absent == "old" else 0.0
            total = average.sums[where] + (devices - arrived) * instead
            model[where] = (total / devices).astype(np.float32)
    return model
