"""Filters: what happens to updates on their way from the radio into the mean.

A run has a chain of them. Differential privacy is two, `Clip` and `Privacy` in `privacy.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slimfl.methods import Arrival, OnSums, Positions, RunningMean
from slimfl.nn import Vector
from slimfl.population import Device


@dataclass(frozen=True, eq=False)
class Passage:
    """One device of a round, as a filter sees it."""

    device: Device
    counted: Positions | None
    """The parameters in whose mean the device counts, whatever it does; None if in none."""
    arrival: Arrival | None
    """What came through; None if nothing usable did."""


class Filter:
    """Override what you need; by default everything passes unchanged."""

    works_on_sums = False
    """Whether `on_sums` must be heard: then only methods that average can be used."""

    def begin(self, round: int, model: Vector) -> None:
        """Before the first update of a round."""

    def on_passage(self, passage: Passage) -> Passage:
        """One device's update on its way."""
        return passage

    def on_sums(self, running: RunningMean) -> None:
        """The sums of all updates, before they become a mean; change them in place."""


def on_sums(filters: Sequence[Filter]) -> OnSums | None:
    """What some filters do to the sums, None if none of them does anything."""
    active = [each for each in filters if each.works_on_sums]
    if not active:
        return None

    def apply(running: RunningMean) -> None:
        for each in active:
            each.on_sums(running)

    return apply
