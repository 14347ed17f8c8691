"""Filters: changes to updates between the radio and the mean.

A run has a chain of filters. Differential privacy is two: `Clip` and `Privacy` in
`privacy/mechanism.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slimfl.devices import Device
from slimfl.methods import Arrival, OnSums, Positions, RunningMean
from slimfl.nn import Vector


@dataclass(frozen=True, eq=False)
class Passage:
    """One device of a round, as a filter sees it."""

    device: Device
    counted: Positions | None
    """Parameters in whose mean the device counts whether or not it answers; None if there are
    none."""
    arrival: Arrival | None
    """What arrived; None if nothing usable did."""


class Filter:
    """Base class: override what you need; by default everything passes unchanged."""

    works_on_sums = False
    """True if `on_sums` does anything; the filter then works only with methods that average."""

    def begin(self, round: int, model: Vector) -> None:
        """Called before the first update of a round."""

    def on_passage(self, passage: Passage) -> Passage:
        """Called with each device's update; returns what goes on."""
        return passage

    def on_sums(self, running: RunningMean) -> None:
        """Called with the sums of all updates before they become a mean; change them in place."""


def on_sums(filters: Sequence[Filter]) -> OnSums | None:
    """The `on_sums` of all these filters as one function; None if none has any."""
    active = [each for each in filters if each.works_on_sums]
    if not active:
        return None

    def apply(running: RunningMean) -> None:
        for each in active:
            each.on_sums(running)

    return apply
