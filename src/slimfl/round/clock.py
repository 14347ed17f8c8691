"""Virtual time: how long devices work, when a round ends, and what that costs their batteries.

A task lasts t = download bits / downlink rate + 3 * images * multiply-adds / speed + airtime. In a
synchronous round a device is cut off if the round ends or its battery runs out first. It has then
done as much work as time or charge allowed, and what it learnt is lost, including its optimiser
state. Devices are ordered by (time, device), so that ties do not depend on execution order; one
whose upload ends exactly at the deadline is in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimfl.devices.participation import round_half_up
from slimfl.experiment import Experiment
from slimfl.methods import State
from slimfl.round.reasons import BATTERY, DEADLINE

Floats = NDArray[np.float64]

#: A training step is a forward pass, and a backward pass of about twice the work.
TRAINING_PASSES = 3


class Batteries:
    """The charge of every device in joules; infinite on mains power. An empty one stays empty."""

    def __init__(self, capacity_j: Floats) -> None:
        self.capacity_j = capacity_j
        self.left_j = np.array(capacity_j, np.float64)

    @property
    def any(self) -> bool:
        """True if some device has a battery."""
        return bool(np.isfinite(self.capacity_j).any())

    @property
    def empty(self) -> NDArray[np.bool_]:
        """The devices without charge."""
        return np.asarray(self.left_j <= 0)

    def share(self, ids: NDArray[np.int64]) -> Floats | None:
        """The remaining share of each device's full battery; None if no device has one."""
        if not self.any:
            return None
        full = self.capacity_j[ids]
        share = np.ones(len(ids))
        np.divide(self.left_j[ids], full, out=share, where=np.isfinite(full) & (full > 0))
        return np.where(full > 0, share, 0.0)

    def drain(self, ids: NDArray[np.int64] | Sequence[int], used_j: Floats) -> None:
        """Subtract energy; the charge never becomes negative."""
        self.left_j[ids] = np.maximum(self.left_j[ids] - used_j, 0.0)

    def fields(self, ids: Sequence[int] | NDArray[np.int64]) -> dict[str, Any]:
        """For a record: the charge of devices that worked, and the number of empty batteries."""
        if not self.any:
            return {}
        drained = np.unique(np.asarray(ids, np.int64))
        drained = drained[np.isfinite(self.left_j[drained])]
        return {
            "drained": drained.tolist(),
            "battery_left_j": self.left_j[drained].tolist(),
            "empty": int(self.empty.sum()),
        }

    def state(self) -> State:
        """What a checkpoint stores; nothing if no device has a battery."""
        return {"battery_left_j": self.left_j.copy()} if self.any else {}

    def restore(self, state: State) -> None:
        """Restore what `state` returned."""
        if self.any:
            self.left_j = np.array(state["battery_left_j"], np.float64)


@dataclass(frozen=True, eq=False)
class WorkCosts:
    """The seconds and joules of every device's work; columns are over devices."""

    ids: NDArray[np.int64]
    download_s: Floats
    training_s: Floats
    airtime_s: Floats
    compute_j: Floats
    transmit_j: Floats
    heard: NDArray[np.bool_]
    """Whether at least one message gets through, as far as that is known beforehand."""

    @property
    def needed_j(self) -> Floats:
        """The energy of the whole work."""
        return np.asarray(self.compute_j + self.transmit_j)

    @property
    def trained_s(self) -> Floats:
        """When training ends, since the work began."""
        return np.asarray(self.download_s + self.training_s)

    @property
    def finished_s(self) -> Floats:
        """When the upload ends, since the work began."""
        return np.asarray(self.trained_s + self.airtime_s)

    def trained_share(self, end_s: float | Floats) -> Floats:
        """The share of its training that each device has done by `end_s`."""
        return _share(end_s - self.download_s, self.training_s)

    def sent_share(self, end_s: float | Floats) -> Floats:
        """The share of its upload that each device has sent by `end_s`."""
        return _share(end_s - self.trained_s, self.airtime_s)


def _share(elapsed_s: Floats, of_s: Floats) -> Floats:
    """The finished share; a part that takes no time is finished once it is reached."""
    done = np.where(elapsed_s >= of_s, 1.0, 0.0)
    running = (elapsed_s > 0) & (elapsed_s < of_s)
    return np.divide(elapsed_s, of_s, out=done, where=running)


@dataclass(frozen=True, eq=False)
class RoundTime:
    """The time and energy of one synchronous round; columns are over the devices that began."""

    ids: NDArray[np.int64]
    in_time: NDArray[np.bool_]
    finished_s: Floats
    """When the upload of each would end if it were not cut off, since the start of the round."""
    duration_s: float
    compute_j: Floats
    """Energy spent on computing, also by devices that were cut off."""
    transmit_j: Floats
    used_j: Floats
    """Energy that the round takes from each battery."""
    cut_off: dict[int, str]
    """Devices that began and did not finish in time, with the reason."""

    def settle(self, before_s: float, batteries: Batteries) -> dict[str, Any]:
        """Take the round's energy from the batteries, and give the fields of a record.

        Fields that carry no information are left out.
        """
        batteries.drain(self.ids, self.used_j)
        clock_s, finished_s = before_s + self.duration_s, self.finished_s[self.in_time]
        cut_off_j = fsum(self.transmit_j[~self.in_time])
        return {
            "duration_s": clock_s - before_s,
            "clock_s": clock_s,
            **({"finished_s": finished_s.tolist()} if differing(finished_s) else {}),
            "compute_energy_j": fsum(self.compute_j),
            **({"cut_off_energy_j": cut_off_j} if self.cut_off else {}),
            **batteries.fields(self.ids),
        }


def differing(values: Floats) -> bool:
    """True if the values are not all the same."""
    return len(values) > 0 and bool((values != values[0]).any())


def round_time(experiment: Experiment, costs: WorkCosts, batteries: Batteries) -> RoundTime:
    """Time and energy of a round in which devices have these costs."""
    left_j = batteries.left_j[costs.ids]
    lasts = left_j >= costs.needed_j
    finished_s = costs.finished_s
    deadline_s, first = experiment.time.deadline_s, wanted(experiment)
    duration_s, in_time = round_end(
        costs.ids, finished_s, lasts, costs.heard, deadline_s=deadline_s, first=first
    )
    cut_s = np.inf if deadline_s is None and first is None else duration_s
    stopped_s = np.where(in_time, np.inf, cut_s)
    compute_j = costs.compute_j * costs.trained_share(stopped_s)
    transmit_j = costs.transmit_j * costs.sent_share(stopped_s)
    died = ~lasts & (compute_j + transmit_j >= left_j)
    compute_j = np.minimum(compute_j, left_j)
    transmit_j = np.minimum(transmit_j, left_j - compute_j)
    # exactly what was left, so that nothing remains
    used_j = np.where(died, left_j, compute_j + transmit_j)
    late = zip(costs.ids[~in_time].tolist(), died[~in_time].tolist(), strict=True)
    cut_off = {device: BATTERY if empty else DEADLINE for device, empty in late}
    return RoundTime(
        costs.ids, in_time, finished_s, duration_s, compute_j, transmit_j, used_j, cut_off
    )


def round_end(
    ids: NDArray[np.int64],
    finished_s: Floats,
    ends: NDArray[np.bool_],
    heard: NDArray[np.bool_],
    *,
    deadline_s: float | None = None,
    first: int | None = None,
) -> tuple[float, NDArray[np.bool_]]:
    """How long a round lasts, and which devices' uploads ended before it did.

    Args:
        ids: The devices that work.
        finished_s: When the upload of each would end.
        ends: Whether the upload completes; it does not if the battery runs out.
        heard: Whether at least one message gets through.
        deadline_s: The latest time at which the server stops listening.
        first: The number of devices after which the server ends the round.
    """
    in_time = ends & (finished_s <= (np.inf if deadline_s is None else deadline_s))
    if first is not None:
        order = np.lexsort((ids, finished_s))
        counted = order[(in_time & heard)[order]]
        if len(counted) >= first:
            after_last = order[np.flatnonzero(order == counted[first - 1])[0] + 1 :]
            in_time[after_last] = False
            return float(finished_s[counted[first - 1]]), in_time
    duration_s = float(finished_s[in_time].max(initial=0.0))
    if deadline_s is not None and not in_time.all():
        duration_s = deadline_s  # the server waited for a device that did not come
    return duration_s, in_time


def wanted(experiment: Experiment) -> int | None:
    """The number of devices that a round waits for; None for all."""
    section = experiment.time
    if section.mode == "over-commit":
        federation = experiment.federation
        return max(1, round_half_up(federation.participation * federation.devices))
    return section.first


def asked_share(experiment: Experiment) -> float:
    """The share of devices that are asked in a round."""
    share = experiment.federation.participation
    if experiment.time.mode == "over-commit":
        share = min(1.0, share * experiment.time.over_commit)
    return share
