"""When a synchronous round ends, and which devices were in time.

Devices are ordered by (time, device), so that ties do not depend on execution order. A device whose
upload ends exactly at the deadline is in time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class RoundEnd:
    """How long a round lasts, and which devices made it."""

    duration_s: float
    in_time: Booleans
    """Per device, whether its upload ended before the round did."""


def round_end(
    ids: NDArray[np.int64],
    finished_s: Floats,
    ends: Booleans,
    heard: Booleans,
    *,
    deadline_s: float | None = None,
    first: int | None = None,
) -> RoundEnd:
    """The end of a round.

    Args:
        ids: of the devices that work.
        finished_s: when the upload of each would end.
        ends: whether the upload completes; it does not if the battery runs out.
        heard: whether at least one message gets through.
        deadline_s: the latest time at which the server stops listening.
        first: the number of devices after which the server ends the round.
    """
    in_time = ends.copy()
    limit_s = np.inf if deadline_s is None else deadline_s
    in_time &= finished_s <= limit_s
    if first is not None:
        order = np.lexsort((ids, finished_s))
        wanted = order[(in_time & heard)[order]]
        if len(wanted) >= first:
            after_last = order[np.flatnonzero(order == wanted[first - 1])[0] + 1 :]
            in_time[after_last] = False
            return RoundEnd(float(finished_s[wanted[first - 1]]), in_time)
    duration_s = float(finished_s[in_time].max(initial=0.0))
    if deadline_s is not None and not in_time.all():
        duration_s = deadline_s  # the server waited for a device that did not come
    return RoundEnd(duration_s, in_time)
