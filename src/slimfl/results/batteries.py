"""The batteries of a run over time, from its metrics and its devices.csv."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slimfl.results.axes import clock_s
from slimfl.results.records import RunRecord
from slimfl.round import RoundRecord


@dataclass(frozen=True)
class Moment:
    """A round, and the virtual time at its end."""

    round: int
    clock_s: float


@dataclass(frozen=True)
class BatteryLine:
    """The total charge of all batteries over the rounds, starting with full ones."""

    rounds: list[int]
    seconds: list[float]
    left_share: list[float]
    """Share of the initial charge of all batteries."""
    empty: list[int]
    """Number of devices with an empty battery."""


def emptied(lines: Sequence[RoundRecord], devices: int, share: float) -> Moment | None:
    """When this share of all devices, and at least one, was empty; None if it never was.

    A share of 0 means the first device.
    """
    wanted = max(1.0, share * devices)
    for line, at in zip(lines, clock_s(lines), strict=True):
        if (line.empty or 0) >= wanted:
            return Moment(line.round, at)
    return None


def battery_line(run: RunRecord) -> BatteryLine | None:
    """The batteries of one run; None if its devices have none."""
    devices = run.devices
    if devices is None or not np.isfinite(devices.battery_j).any():
        return None
    left = np.where(np.isfinite(devices.battery_j), devices.battery_j, 0.0)
    full = left.sum()
    shares, empty = [1.0], [int((devices.battery_j <= 0).sum())]
    for line in run.lines:
        left[line.drained or []] = line.battery_left_j or []
        shares.append(float(left.sum() / full) if full else 0.0)
        empty.append(line.empty or 0)
    rounds = [0, *(line.round for line in run.lines)]
    return BatteryLine(rounds, [0.0, *clock_s(run.lines)], shares, empty)
