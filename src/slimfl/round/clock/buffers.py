"""Buffered asynchronous merging (FedBuff, Nguyen et al. 2022), with one buffer per segment.

A device may deliver only segment 1, so each segment has its own buffer and version number. Once
`size` uploads have taken a place in a segment's buffer, the server merges what they delivered and
increments the version. The staleness of an update is the number of versions its segment has gone
through since the device began; the update's change is weighted by 1 / (1 + staleness)^exponent.

An upload that should have contained the segment takes a place even if the channel lost it: the
server assigned the slot and sees that it failed. So with identical devices, and as many places as
devices, the merges are those of synchronous rounds. With `count = "arrivals"`, only what arrived
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
    """The segments that it should have delivered."""
    arrived: tuple[int, ...]
    versions: tuple[int, ...]
    """Version of every segment in the model that the device started from."""
    key: int
    """Number of the upload."""


class SegmentBuffers:
    """Uploads that wait to be merged, in order of arrival."""

    def __init__(self, segments: int, size: int, count: str = "uploads") -> None:
        self.size, self.count = size, count
        self.versions = np.zeros(segments, np.int64)
        self.places = np.zeros(segments, np.int64)
        """Number of places taken in each buffer."""
        self.waiting: list[tuple[Landed, tuple[int, ...]]] = []
        """Each upload with those of its segments that are not merged yet."""

    def add(self, landed: Landed) -> None:
        """Add an upload to the buffers of its segments."""
        taken = landed.sent if self.count == "uploads" else landed.arrived
        self.places[list(taken)] += 1
        if landed.arrived:
            self.waiting.append((landed, landed.arrived))

    def due(self) -> tuple[int, ...]:
        """The segments whose buffer is full."""
        return tuple(np.flatnonzero(self.places >= self.size).tolist())

    def filled(self) -> tuple[int, ...]:
        """The segments whose buffer is not empty."""
        return tuple(np.flatnonzero(self.places > 0).tolist())

    def take(self, segments: Sequence[int]) -> list[tuple[Landed, tuple[int, ...]]]:
        """Empty some buffers; returns each upload with its segments in them."""
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
        """How many versions a segment has advanced since the device began."""
        return int(self.versions[segment]) - landed.versions[segment]


def discount(staleness: int, exponent: float) -> float:
    """The weight of a stale change.

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
    """The update's change, discounted by staleness, applied to the current model.

    `parts` are positions with their staleness. What is not stale is returned bit for bit.
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
    """The mean staleness of what is merged per segment; None if nothing is."""
    found: list[list[int]] = [[] for _ in range(segments)]
    for landed, parts in taken:
        for segment in parts:
            found[segment].append(buffers.staleness(landed, segment))
    return [float(np.mean(each)) if each else None for each in found]
