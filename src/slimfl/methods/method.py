"""The interface of methods: who trains and sends what, and how the server merges it.

A method is a small frozen value. Its state between rounds is named arrays, which the run stores in
checkpoints and passes back, so a method with state resumes bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from slimfl.devices import Device
from slimfl.experiment.naming import as_options
from slimfl.methods.arrivals import Arrivals
from slimfl.nn import ChannelOrder, Vector
from slimfl.radio import Messages
from slimfl.rng import generator
from slimfl.training import LocalWork

#: What a method keeps from round to round.
State = dict[str, NDArray[Any]]

#: Creates the generator of one device in one round, when a method needs it.
Random = Callable[[], np.random.Generator]


@dataclass(frozen=True)
class Assignment:
    """What one device does in one round: plain values that can be sent to other processes."""

    widths: tuple[int, ...]
    """Indices of the widths to train, ascending; they need not contain the full one."""
    messages: Messages
    """What to send, superposed: for each message, the segments that it carries."""
    step: str | None = None
    """Name of the local step; None is the configured one, or plain training for one width."""
    step_options: Mapping[str, Any] = field(default_factory=dict)
    visit: str = "all"
    """Which of the widths take part in a step, as in `LocalWork`."""
    weights: tuple[float, ...] | None = None
    """Loss weight of every width of the network; None for the configured ones."""
    channels: ChannelOrder | None = None
    """The order of the channels, for a device that trains others than the leading ones."""
    effort: float = 1.0
    """The part of the configured local steps that the device takes, at least one step."""

    @property
    def work(self) -> LocalWork:
        """The part that a device's trainer needs."""
        return LocalWork(
            self.widths,
            self.step,
            as_options(self.step_options),
            self.visit,
            self.weights,
            self.channels,
            self.effort,
        )


class Method(Protocol):
    """A federated method."""

    @property
    def name(self) -> str:
        """As on the command line."""

    def evaluates(self) -> tuple[int, ...]:
        """The widths that the method delivers, which are tested."""

    def assign(self, device: Device, round: int, random: Random) -> Assignment | None:
        """What a device does in a round; None if it sits the round out."""

    def initial_state(self, model: Vector) -> State:
        """The server's state before the first round; an empty dictionary if there is none."""

    def aggregate(self, model: Vector, state: State, arrivals: Arrivals) -> tuple[Vector, State]:
        """The new global model and the new state, from what arrived."""


def full_assignment(method: Method, width_count: int) -> Assignment:
    """What a method assigns in the first round to a device that can train every width."""
    device = Device(id=0, samples=1, max_width=width_count - 1, power_dbm=0.0, distance_m=1.0)
    assignment = method.assign(device, 1, lambda: generator(0, "assignment"))
    return assignment or Assignment((), ())
