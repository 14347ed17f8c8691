"""The plan of a round: who takes part, what each device trains and sends, over which link."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from slimfl.devices import Population
from slimfl.engines import Task
from slimfl.methods import Assignment, State
from slimfl.radio import Links, Signal
from slimfl.round.clock.synchronous import RoundTime


@dataclass(frozen=True, eq=False)
class Plan:
    """A round before it is run; one row per device that trains."""

    round: int
    devices: Population
    assignments: list[Assignment]
    signals: list[Signal]
    links: Links
    channel_state: State
    """State of the channel after this round."""
    absent: list[int]
    """Devices that were asked and will not deliver: empty, silent, or cut off."""
    timing: RoundTime
    """Time and energy of the devices' work, including those that are cut off."""
    reasons: dict[int, str] = field(default_factory=dict)
    """Why a device that was asked does not train, by device id."""
    began_s: float = field(default_factory=time.perf_counter)
    own_start: frozenset[int] = frozenset()
    """Devices that missed the global model and train on from their own last one."""

    def __len__(self) -> int:
        return len(self.assignments)

    @property
    def tasks(self) -> list[Task]:
        """The plan's work for the engine."""
        return [
            Task(device, assignment.work)
            for device, assignment in zip(self.devices.ids.tolist(), self.assignments, strict=True)
        ]
