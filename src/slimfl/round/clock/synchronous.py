"""A synchronous round on the clock: who is in time, how long it lasts, what it costs devices.

A device is cut off if the round ends or its battery runs out first. It has then done as much work
as time or charge allowed, and what it learnt is lost, including its optimiser state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slimfl.devices.participation import round_half_up
from slimfl.experiment import Experiment
from slimfl.round.clock.batteries import Batteries
from slimfl.round.clock.round_end import round_end
from slimfl.round.clock.task_costs import TaskCosts
from slimfl.round.reasons import BATTERY, DEADLINE

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RoundTime:
    """The time and energy of one round; columns are over the devices that began."""

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


def round_time(experiment: Experiment, costs: TaskCosts, batteries: Batteries) -> RoundTime:
    """Time and energy of a round in which devices have these costs."""
    left_j = batteries.left_j[costs.ids]
    lasts = left_j >= costs.needed_j
    finished_s = costs.times.finished_s
    section = experiment.time
    end = round_end(
        costs.ids,
        finished_s,
        lasts,
        costs.heard,
        deadline_s=section.deadline_s,
        first=wanted(experiment),
    )
    cut_s = np.inf if section.deadline_s is None and wanted(experiment) is None else end.duration_s
    stopped_s = np.where(end.in_time, np.inf, cut_s)
    compute_j = costs.compute_j * costs.times.trained_share(stopped_s)
    transmit_j = costs.transmit_j * costs.times.sent_share(stopped_s)
    died = ~lasts & (compute_j + transmit_j >= left_j)
    compute_j = np.minimum(compute_j, left_j)
    transmit_j = np.minimum(transmit_j, left_j - compute_j)
    return RoundTime(
        costs.ids,
        end.in_time,
        finished_s,
        end.duration_s,
        compute_j,
        transmit_j,
        np.where(
            died, left_j, compute_j + transmit_j
        ),  # exactly what was left, so that nothing remains
        {
            int(device): BATTERY if empty else DEADLINE
            for device, empty in zip(costs.ids[~end.in_time], died[~end.in_time], strict=True)
        },
    )


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


def no_round_time() -> RoundTime:
    """An empty table: asynchronous devices have no common start."""
    none, nobody = np.zeros(0), np.zeros(0, np.int64)
    return RoundTime(nobody, np.zeros(0, np.bool_), none, 0.0, none, none, none, {})
