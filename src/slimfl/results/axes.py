"""The x-axes of curves: rounds, virtual seconds, joules or bits.

Joules are those of computing and sending together. The axis title names the energy presets, as they
differ by two orders of magnitude.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from slimfl.results.energy import computing_counted, energy_words, round_energy_j
from slimfl.results.groups import Group
from slimfl.results.records import RunRecord
from slimfl.round import RoundRecord


@dataclass(frozen=True)
class Axis:
    """Positions on an x-axis, one per requested round."""

    name: str
    title: str
    values: list[float]
    """The mean over the seeds that have begun."""


def x_axes(group: Group, rounds: Sequence[int]) -> dict[str, Axis]:
    """The positions of these rounds on every axis; every seed must have all of them."""
    begun = [run for run in group.runs if run.lines]
    computing = all(computing_counted(run) for run in begun)
    words = "; ".join(dict.fromkeys(energy_words(run, computing) for run in begun))
    values: dict[str, tuple[str, Callable[[RunRecord], list[float]]]] = {
        "rounds": ("rounds", lambda run: [float(line.round) for line in run.lines]),
        "seconds": ("virtual seconds", lambda run: clock_s(run.lines)),
        "joules": (
            f"joules of all devices ({words})",
            lambda run: _running(run, lambda line: round_energy_j(line, computing)),
        ),
        "bits": ("bits sent by all devices", lambda run: _running(run, _bits)),
    }
    return {
        name: Axis(name, title, _mean(begun, position, rounds))
        for name, (title, position) in values.items()
    }


def clock_s(lines: Sequence[RoundRecord]) -> list[float]:
    """Virtual time after every round.

    Older versions recorded none. Their devices computed in no time and sent in parallel for equally
    long, so a round lasted as long as one upload.
    """
    passed, clock = [], 0.0
    for line in lines:
        if line.clock_s is not None:
            clock = line.clock_s
        else:
            clock += line.airtime_s / max(len(line.devices), 1)
        passed.append(clock)
    return passed


def _bits(line: RoundRecord) -> float:
    return float(sum(line.bits_sent))


def _running(run: RunRecord, value: Callable[[RoundRecord], float]) -> list[float]:
    return list(accumulate(value(line) for line in run.lines))


def _mean(
    runs: Sequence[RunRecord], position: Callable[[RunRecord], list[float]], rounds: Sequence[int]
) -> list[float]:
    found = [position(run) for run in runs]
    return [sum(each[r - 1] for each in found) / len(found) for r in rounds]
