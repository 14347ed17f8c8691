"""The work of some devices: assignments, signals, links and costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from slimfl.devices import Population
from slimfl.methods import Assignment, State
from slimfl.radio import Links, Signal
from slimfl.round.clock.synchronous import RoundTime
from slimfl.round.clock.task_costs import TaskCosts
from slimfl.round.plan import Plan


@dataclass(frozen=True, eq=False)
class Work:
    """One row per device with an assignment."""

    devices: Population
    assignments: list[Assignment]
    signals: list[Signal]
    links: Links
    channel_state: State
    """State of the channel afterwards."""
    costs: TaskCosts
    unable: list[int] = field(default_factory=list)
    """Devices that got no assignment from the method."""

    def __len__(self) -> int:
        return len(self.assignments)

    def plan(
        self,
        number: int,
        rows: Sequence[int],
        absent: list[int],
        timing: RoundTime,
        reasons: dict[int, str] | None = None,
    ) -> Plan:
        """The plan of round `number` for the devices in these rows."""
        every = len(rows) == len(self)
        at = np.asarray(rows, np.int64)
        return Plan(
            number,
            self.devices if every else self.devices.take(at),
            [self.assignments[row] for row in rows],
            [self.signals[row] for row in rows],
            self.links if every else self.links.take(at),
            self.channel_state,
            absent,
            timing,
            reasons or {},
        )
