"""Buffered asynchronous merging (FedBuff, Nguyen et al. 2022), with one buffer per segment.

A device may deliver segment 1 alone, so every segment has a buffer and a version of its own. Once
`size` uploads have taken a place in the buffer of a segment, the server merges what they brought
and the version goes up by one. The staleness of an update is the number of versions that its
segment went through since the device began; its change counts 1 / (1 + staleness)^exponent.

A place is taken by an upload that was to bring the segment, whether the channel let it through or
not: the server gave out the slot and sees that it failed. So with equal devices, and as many places
as devices, the merges are those of synchronous rounds. With `count = "arrivals"` only what arrived
takes a place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slimfl.methods import Positions
from slimfl.nn import Vector


@dataclass(frozen=True, eq=False)
class Landed:
    """An upload that has ended."""

    device: int
    sent: tuple[int, ...]
    """The segments that it was to bring."""
    arrived: tuple[int, ...]
    versions: tuple[int, ...]
    """Of every segment, in the model that the device began with."""
    key: int
    """Which upload it is: its number among all that were begun."""


class SegmentBuffers:
    """What waits to be merged, in the order in which it landed."""

    def __init__(self, segments: int, size: int, count: str = "uploads") -> None:
        self.size, self.count = size, count
        self.versions = np.zeros(segments, np.int64)
        self.places = np.zeros(segments, np.int64)
        """Taken in every buffer."""
        self.waiting: list[tuple[Landed, tuple[int, ...]]] = []
        """Uploads with the segments of theirs that are not merged yet."""

    def add(self, landed: Landed) -> None:
        """Put an upload into the buffers of its segments."""
        taken = landed.sent if self.count == "uploads" else landed.arrived
        self.places[list(taken)] += 1
        if landed.arrived:
            self.waiting.append((landed, landed.arrived))

    def due(self) -> tuple[int, ...]:
        """The segments whose buffer is full."""
        return tuple(np.flatnonzero(self.places >= self.size).tolist())

    def filled(self) -> tuple[int, ...]:
        """The segments whose buffer holds anything."""
        return tuple(np.flatnonzero(self.places > 0).tolist())

    def take(self, segments: Sequence[int]) -> list[tuple[Landed, tuple[int, ...]]]:
        """Empty some buffers; returns every upload with its segments among them."""
        taken, kept = [], []
        for landed, waiting in self.waiting:
            now = tuple(s for s in waiting if s in segments)
            later = tuple(s for s in waiting if s not in segments)
            if now:
                taken.append((landed, now))
            if later:
                kept.append((landed, later))
        self.waiting = kept
        self.places[list(segments)] = 0
        return taken

    def staleness(self, landed: Landed, segment: int) -> int:
        """How many versions of a segment are newer than the one that a device began with."""
        return int(self.versions[segment]) - landed.versions[segment]


def discount(staleness: int, exponent: float) -> float:
    """How much a stale change counts.

    >>> discount(0, 0.5), discount(3, 0.5), discount(9, 0.0)
    (1.0, 0.5, 1.0)
    """
    return float((1.0 + staleness) ** -exponent)


def moved_to(
    model: Vector,
    began_with: Vector,
    parameters: Vector,
    parts: Sequence[tuple[Positions, int]],
    exponent: float,
) -> Vector:
    """An update as if its device had begun with the model of now, discounted by its staleness.

    `parts` are positions with their staleness. What is not stale is left as it came, to the bit.
    """
    if all(staleness == 0 for _, staleness in parts):
        return parameters
    moved = parameters.copy()
    for where, staleness in parts:
        if staleness:
            change = parameters[where].astype(np.float64) - began_with[where]
            moved[where] = (model[where] + discount(staleness, exponent) * change).astype(
                np.float32
            )
    return moved


def mean_staleness(
    buffers: SegmentBuffers, taken: Sequence[tuple[Landed, tuple[int, ...]]], segments: int
) -> list[float | None]:
    """For every segment, the mean staleness of what is merged; None where nothing is."""
    found: list[list[int]] = [[] for _ in range(segments)]
    for landed, parts in taken:
        for segment in parts:
            found[segment].append(buffers.staleness(landed, segment))
    return [float(np.mean(each)) if each else None for each in found]
