"""The interface of methods: who trains and sends what, and how the server merges it.

A method is a small frozen value. Its state between rounds is named arrays, which the run stores in
checkpoints and passes back, so a method with state resumes bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from slimfl.devices import Device
from slimfl.methods.merging import Merge, RunningMean, State
from slimfl.nn import Vector
from slimfl.rng import generator
from slimfl.training import Work

#: Creates the generator of one device in one round, when a method needs it.
Random = Callable[[], np.random.Generator]


class Method(Protocol):
    """A federated method."""

    @property
    def name(self) -> str:
        """As on the command line."""

    def evaluates(self) -> tuple[int, ...]:
        """The widths that the method delivers, which are tested."""

    def assign(self, device: Device, round: int, random: Random) -> Work | None:
        """What a device does in a round; None if it sits the round out.

        Args:
            device: The device, with the widest width that it can train.
            round: Number of the round, from 1.
            random: Makes the generator of this device in this round, if something is drawn.
        """

    def start(self, model: Vector) -> State:
        """The server's state before the first round; an empty dictionary if there is none."""

    def merge(self, mean: RunningMean, state: State) -> Merge:
        """What merges a round: it is given every arrival, then asked for the result.

        Args:
            mean: The mean of the round, which has the model before it.
            state: What `start`, or the merge of the round before, returned.
        """


def full_work(method: Method, width_count: int) -> Work:
    """What a method gives in the first round to a device that can train every width."""
    device = Device(id=0, samples=1, max_width=width_count - 1, power_dbm=0.0, distance_m=1.0)
    return method.assign(device, 1, lambda: generator(0, "assignment")) or Work(())
