"""The fields of a metrics line on virtual time, energy and batteries."""

from __future__ import annotations

from math import fsum
from typing import Any

import numpy as np

from slimfl.round.clock.batteries import Batteries
from slimfl.round.clock.synchronous import RoundTime


def clock_fields(
    before_s: float, clock_s: float, time: RoundTime, batteries: Batteries
) -> dict[str, Any]:
    """The fields of a synchronous round; those that carry no information are left out."""
    finished_s = time.finished_s[time.in_time]
    cut_off_j = fsum(time.transmit_j[~time.in_time])
    return {
        "duration_s": clock_s - before_s,
        "clock_s": clock_s,
        **({"finished_s": finished_s.tolist()} if differing(finished_s) else {}),
        "compute_energy_j": fsum(time.compute_j),
        **({"cut_off_energy_j": cut_off_j} if time.cut_off else {}),
        **battery_fields(time.ids, batteries),
    }


def battery_fields(ids: Any, batteries: Batteries) -> dict[str, Any]:
    """The charge of the devices that worked, and the number of empty batteries overall."""
    if not batteries.any:
        return {}
    drained = np.unique(np.asarray(ids, np.int64))
    drained = drained[np.isfinite(batteries.left_j[drained])]
    return {
        "drained": drained.tolist(),
        "battery_left_j": batteries.left_j[drained].tolist(),
        "empty": int(batteries.empty.sum()),
    }


def differing(values: np.ndarray[Any, Any]) -> bool:
    """True if the values are not all the same."""
    return len(values) > 0 and bool((values != values[0]).any())
