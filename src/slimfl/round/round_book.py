"""What happened in a round, collected while updates stream by."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from slimfl.engines import Update
from slimfl.radio import Ledger, Links, Receptions
from slimfl.round.plan import Plan


class RoundBook:
    """Collects the facts of one round and decides nothing."""

    def __init__(self, plan: Plan, widths: int) -> None:
        self.plan, self.widths = plan, widths
        self.ledger = Ledger(widths)
        self.rows: list[int] = []
        """Rows of the plan from which an update came, in order."""
        self.gains: list[float] = []
        self.arrived: list[tuple[int, ...]] = []
        """The segments that arrived from each of `rows`."""
        self.decoded: list[int] = []
        """How many messages of each of `rows` were decoded."""
        self.refused: list[int] = []
        self.clipped: list[int] = []
        self.losses = MeanLosses(widths)
        self.images = 0
        """Number of images that devices trained on; one counts once, at however many widths."""
        self.images_by_width = np.zeros(widths, np.int64)
        self.samples: list[int] = []
        """Number of samples of each device."""

    def receive(
        self, rows: Sequence[int], updates: Sequence[Update], links: Links, receptions: Receptions
    ) -> None:
        """Add some devices' updates and their receptions."""
        signals = [self.plan.signals[row] for row in rows]
        self.ledger.add(links, signals, receptions)
        self.rows += rows
        self.gains += links.gains.tolist()
        self.decoded += receptions.decoded.tolist()
        self.arrived += [
            sent.segments_decoded(count)
            for sent, count in zip(signals, receptions.decoded.tolist(), strict=True)
        ]
        for row, update in zip(rows, updates, strict=True):
            self.losses.add(update.losses.tolist())
            work = self.plan.assignments[row].work
            self.images += work.images_trained_on(update.images_seen)
            self.images_by_width += update.images_seen
            self.samples.append(update.samples)

    @property
    def devices(self) -> list[int]:
        """Devices that answered."""
        ids: list[int] = self.plan.devices.ids[self.rows].tolist()
        return ids

    @property
    def dropped_out(self) -> list[int]:
        """Devices that were asked and delivered no usable answer."""
        asked: set[int] = set(self.plan.devices.ids.tolist())
        return sorted({*self.plan.absent, *asked} - {*self.devices})

    @property
    def delivered(self) -> list[int]:
        """Per segment, the number of devices whose copy was merged."""
        merged = [
            segments
            for segments, device in zip(self.arrived, self.devices, strict=True)
            if device not in self.refused
        ]
        return [sum(s in segments for segments in merged) for s in range(self.widths)]


class MeanLosses:
    """The mean training loss per width, over the devices that trained that width."""

    def __init__(self, widths: int) -> None:
        self.counts, self.sums = [0] * widths, [0.0] * widths

    def add(self, losses: Sequence[float]) -> None:
        """Add the losses of one device; NaN for widths that it did not train."""
        for i, loss in enumerate(losses):
            if not math.isnan(loss):
                self.counts[i] += 1
                self.sums[i] += loss

    @property
    def mean(self) -> list[float]:
        """Per width; 0 if no device trained it."""
        return [total / max(count, 1) for total, count in zip(self.sums, self.counts, strict=True)]
