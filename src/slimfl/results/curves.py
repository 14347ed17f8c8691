"""Quantities over the rounds for plots: bands over seeds, positions on other axes, arrivals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pandas as pd

from slimfl.results.groups import Group
from slimfl.results.records import RunRecord
from slimfl.results.rules import energy_words

#: Maximum number of points; more would only make a page slow.
POINTS = 2000
#: The largest number of devices that a heat map shows.
DEVICES = 100

T = TypeVar("T")


@dataclass(frozen=True)
class Axis:
    """Positions on an x-axis, one per requested round."""

    name: str
    title: str
    values: list[float]
    """The mean over the seeds that have begun."""


@dataclass(frozen=True)
class Arrivals:
    """The outcome of every device in every round of one run."""

    rounds: list[int]
    devices: list[int]
    codes: list[list[int]]
    """[device][round]: 0 nothing, i segments 1 to i, then not asked, no answer, refused."""
    thinned: bool


@dataclass(frozen=True)
class BatteryLine:
    """The total charge of all batteries over the rounds, starting with full ones."""

    rounds: list[int]
    seconds: list[float]
    left_share: list[float]
    """Share of the initial charge of all batteries."""
    empty: list[int]
    """Number of devices with an empty battery."""


def curve(group: Group, key: str, *, so_far: bool = False) -> pd.DataFrame:
    """A column of the rounds over the seeds: `mean`, `low` and `high` by round.

    Args:
        group: The runs; those that have not begun are ignored.
        key: A column of `RunRecord.rounds`.
        so_far: The sum up to each round.
    """
    seeds = [run.rounds[key].dropna() for run in group.runs if key in run.rounds]
    seeds = [values.cumsum() if so_far else values for values in seeds if len(values)]
    if not seeds:
        return pd.DataFrame(columns=["mean", "low", "high"])
    # the rounds that all seeds have, as a mean over changing seeds would jump
    table = pd.concat(seeds, axis=1, join="inner").astype(float)
    return pd.DataFrame(
        {"mean": table.mean(axis=1), "low": table.min(axis=1), "high": table.max(axis=1)}
    )


def width_curves(group: Group, what: str) -> dict[str, pd.DataFrame]:
    """`accuracy`, `loss` or `training_loss` of every width that has one."""
    found = {width: curve(group, f"{what}_{width}") for width in group.runs[0].width_names}
    return {width: table for width, table in found.items() if len(table)}


def x_axes(group: Group, rounds: Sequence[int]) -> dict[str, Axis]:
    """The positions of these rounds on every axis; every seed must have all of them.

    Joules are those of computing and sending together. The title names the energy presets, as they
    differ by two orders of magnitude.
    """
    begun = [run.rounds for run in group.runs if run.lines]
    chosen = list(rounds)

    def mean(positions: list[pd.Series]) -> list[float]:
        table = pd.concat(positions, axis=1, join="inner")
        found: list[float] = table.mean(axis=1).loc[chosen].tolist()
        return found

    def so_far(key: str) -> list[float]:
        return mean([table[key].cumsum() for table in begun])

    joules = f"joules of all devices ({energy_words(group.runs)})"
    return {
        axis.name: axis
        for axis in (
            Axis("rounds", "rounds", [float(round) for round in chosen]),
            Axis("seconds", "virtual seconds", mean([table["clock_s"] for table in begun])),
            Axis("joules", joules, so_far("energy_j")),
            Axis("bits", "bits sent by all devices", [8e6 * mb for mb in so_far("sent_mb")]),
            Axis("sending", "joules sent by all devices", so_far("sending_j")),
            Axis("airtime", "seconds on the air, of all devices", so_far("airtime_s")),
        )
    }


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
    clock = run.rounds["clock_s"]
    return BatteryLine([0, *clock.index.tolist()], [0.0, *clock.tolist()], shares, empty)


def arrivals(run: RunRecord) -> Arrivals:
    """The heat map of one run."""
    devices = run.experiment.federation.devices
    not_asked = len(run.experiment.model.widths) + 1
    kept_lines, fewer_rounds = thin(run.lines, POINTS)
    kept, fewer_devices = thin(range(devices), DEVICES)
    table = np.full((len(kept), len(kept_lines)), not_asked)
    state = np.empty(devices, np.int64)
    for column, line in enumerate(kept_lines):
        state.fill(not_asked)
        state[line.devices] = line.decoded
        state[line.dropped_out] = not_asked + 1
        state[line.refused] = not_asked + 2
        table[:, column] = state[kept]
    return Arrivals(
        rounds=[line.round for line in kept_lines],
        devices=kept,
        codes=table.tolist(),
        thinned=fewer_rounds or fewer_devices,
    )


def thin(values: Sequence[T], limit: int) -> tuple[list[T], bool]:
    """At most `limit` values, evenly spaced with the first and last; True if any were dropped.

    >>> thin(range(9), 3)
    ([0, 4, 8], True)
    """
    if len(values) <= limit:
        return list(values), False
    picked = np.linspace(0, len(values) - 1, limit).round().astype(int)
    return [values[i] for i in picked], True
