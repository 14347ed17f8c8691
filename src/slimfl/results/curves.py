"""Quantities over the rounds for plots: bands over seeds, positions on other axes, batteries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import pandas as pd

from slimfl.results.groups import Group
from slimfl.results.records import RunRecord

#: Maximum number of points; more would only make a page slow.
POINTS = 2000

T = TypeVar("T")


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


def x_axes(group: Group) -> pd.DataFrame:
    """Where each round stands on other axes than rounds: the mean over the seeds that have begun.

    `clock_s` is virtual time. The others are sums of all devices up to the round: `sending_j` of
    transmit energy, `energy_j` with computing, `airtime_s` and `sent_mb`.
    """
    sums = ("sending_j", "airtime_s", "sent_mb", "energy_j")
    axes = {key: curve(group, key, so_far=True)["mean"] for key in sums}
    return pd.DataFrame(axes | {"clock_s": curve(group, "clock_s")["mean"]})


def battery_charge(run: RunRecord) -> pd.DataFrame | None:
    """The batteries of a run by round, beginning with round 0; None if its devices have none.

    Columns are `clock_s`, `left_share` of the initial charge of all batteries, and the number of
    `empty` ones.
    """
    devices = run.devices
    if devices is None or not np.isfinite(devices.battery_j).any():
        return None
    left = np.where(np.isfinite(devices.battery_j), devices.battery_j, 0.0)
    full = left.sum()
    rows = [(0.0, 1.0, int((devices.battery_j <= 0).sum()))]
    for line, clock_s in zip(run.lines, run.rounds["clock_s"], strict=True):
        left[line.drained or []] = line.battery_left_j or []
        rows.append((clock_s, float(left.sum() / full) if full else 0.0, line.empty or 0))
    index = [0, *run.rounds.index]
    return pd.DataFrame(rows, index=index, columns=["clock_s", "left_share", "empty"])


def thin(values: Sequence[T], limit: int) -> tuple[list[T], bool]:
    """At most `limit` values, evenly spaced with the first and last; True if any were dropped.

    >>> thin(range(9), 3)
    ([0, 4, 8], True)
    """
    if len(values) <= limit:
        return list(values), False
    picked = np.linspace(0, len(values) - 1, limit).round().astype(int)
    return [values[i] for i in picked], True
