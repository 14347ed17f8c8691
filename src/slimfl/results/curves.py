"""Quantities over the rounds as plain lists for plots: bands, sums, arrivals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np

from slimfl.results.energy import round_energy_j
from slimfl.results.groups import Group
from slimfl.results.records import RunRecord
from slimfl.round import RoundRecord

#: Maximum number of points; more would only make a page slow.
POINTS = 2000
#: The largest number of devices that a heat map shows.
DEVICES = 100

T = TypeVar("T")


@dataclass(frozen=True)
class Curve:
    """A quantity over rounds: the mean over seeds, and the lowest and highest seed."""

    rounds: list[int]
    mean: list[float]
    low: list[float]
    high: list[float]
    thinned: bool
    """True if rounds were left out to limit the number of points."""


@dataclass(frozen=True)
class Arrivals:
    """The outcome of every device in every round of one run."""

    rounds: list[int]
    devices: list[int]
    codes: list[list[int]]
    """[device][round]: 0 nothing, i segments 1 to i, then not asked, no answer, refused."""
    thinned: bool


def accuracy_curves(group: Group) -> dict[str, Curve]:
    """The accuracy of every evaluated width."""
    widths = dict.fromkeys(
        width for run in group.runs for line in run.evaluated for width in line.accuracy
    )
    return {
        width: _curve(
            [{line.round: line.accuracy[width] for line in run.evaluated} for run in group.runs]
        )
        for width in widths
    }


def energy_curve(group: Group) -> Curve:
    """The transmit energy spent up to each round, in joules."""
    return _curve([_running(run.lines, _sending_j) for run in group.runs])


def loss_curves(group: Group, key: str) -> dict[str, Curve]:
    """`loss` (on the test set) or `training_loss` of every width that has one."""
    widths = dict.fromkeys(w for run in group.runs for line in run.lines for w in line[key])
    curves = {width: _curve([_losses(run, key, width) for run in group.runs]) for width in widths}
    return {width: curve for width, curve in curves.items() if curve.rounds}


def costs_until(group: Group, rounds: Sequence[int]) -> dict[str, list[float]]:
    """The costs up to each of these rounds: the mean over the seeds that have begun."""
    parts: dict[str, Callable[[RoundRecord], float]] = {
        "energy_j": _sending_j,
        "airtime_s": lambda line: line.airtime_s,
        "sent_mb": lambda line: sum(line.bits_sent) / 8e6,
    }
    begun = [run.lines for run in group.runs if run.lines]
    means = {}
    for name, value in parts.items():
        sums = [_running(lines, value) for lines in begun]
        means[name] = [sum(each[r] for each in sums) / len(sums) for r in rounds]
    return means


def _sending_j(line: RoundRecord) -> float:
    return round_energy_j(line, computing=False)


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


def _losses(run: RunRecord, key: str, width: str) -> dict[int, float]:
    """Losses by round; a diverged network or a round without training has none."""
    found = ((line.round, line[key].get(width)) for line in run.lines)
    return {round: value for round, value in found if value is not None}


def _running(lines: list[RoundRecord], value: Callable[[RoundRecord], Any]) -> dict[int, float]:
    sums = accumulate(float(value(line)) for line in lines)
    return dict(zip((line.round for line in lines), sums, strict=True))


def _curve(seeds: list[dict[int, float]]) -> Curve:
    """Over the rounds that all seeds have, as a mean over changing seeds would jump."""
    begun = [values for values in seeds if values]
    common = [r for r in begun[0] if all(r in values for values in begun)] if begun else []
    if not common:
        return Curve([], [], [], [], False)
    rounds, thinned = thin(common, POINTS)
    table = np.array([[values[r] for r in rounds] for values in begun])
    return Curve(
        rounds,
        table.mean(axis=0).tolist(),
        table.min(axis=0).tolist(),
        table.max(axis=0).tolist(),
        thinned,
    )
