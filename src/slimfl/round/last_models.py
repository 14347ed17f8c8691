"""The models of the last rounds, whose mean is tested as a second score."""

from __future__ import annotations

import numpy as np

from slimfl.methods import State
from slimfl.nn import Vector


class LastModels:
    """The last `count` global models, in a ring.

    Args:
        count: How many models the mean is taken over; 0 keeps none.
        parameters: Length of a model.
    """

    def __init__(self, count: int, parameters: int) -> None:
        self.ring = np.zeros((count, parameters), np.float32)

    def add(self, number: int, model: Vector) -> None:
        """Keep the model of a round instead of the oldest one."""
        if len(self.ring):
            self.ring[number % len(self.ring)] = model

    def mean(self, number: int) -> Vector | None:
        """The mean after a round; None before there are `count` models."""
        if not 0 < len(self.ring) <= number:
            return None
        mean: Vector = self.ring.mean(axis=0, dtype=np.float64).astype(np.float32)
        return mean

    def state(self) -> State:
        """What a checkpoint keeps."""
        return {"models": self.ring} if len(self.ring) else {}

    def restore(self, state: State) -> None:
        """Continue from a checkpoint."""
        self.ring = state.get("models", self.ring)
