"""The charge of the devices' batteries; a device with an empty battery never comes back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Batteries:
    """The charge of every device in joules; infinite for devices on mains power."""

    def __init__(self, capacity_j: Floats) -> None:
        self.capacity_j = capacity_j
        self.left_j = np.array(capacity_j, np.float64)

    @property
    def any(self) -> bool:
        """True if some device has a battery."""
        return bool(np.isfinite(self.capacity_j).any())

    @property
    def empty(self) -> NDArray[np.bool_]:
        """The devices without charge."""
        return np.asarray(self.left_j <= 0)

    def share(self, ids: NDArray[np.int64]) -> Floats:
        """The remaining share of each device's full battery; 1 on mains power."""
        full = self.capacity_j[ids]
        share = np.ones(len(ids))
        np.divide(self.left_j[ids], full, out=share, where=np.isfinite(full) & (full > 0))
        return np.where(full > 0, share, 0.0)

    def drain(self, ids: NDArray[np.int64] | Sequence[int], used_j: Floats) -> None:
        """Subtract energy; the charge never becomes negative."""
        self.left_j[ids] = np.maximum(self.left_j[ids] - used_j, 0.0)

    def state(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint stores; nothing if no device has a battery."""
        return {"battery_left_j": self.left_j.copy()} if self.any else {}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        if self.any:
            self.left_j = np.array(state["battery_left_j"], np.float64)
