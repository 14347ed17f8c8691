"""The plan of a round: who takes part, what each device is to train and send, over which link."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from slimfl.engines import Task
from slimfl.federation.clock.synchronous import RoundTime
from slimfl.methods import Assignment, State
from slimfl.population import Population
from slimfl.radio import Links, Signal


@dataclass(frozen=True, eq=False)
class Plan:
    """One round as it is meant to go; one row per device that trains."""

    round: int
    devices: Population
    assignments: list[Assignment]
    signals: list[Signal]
    links: Links
    channel_state: State
    """The channel's memory after this round."""
    absent: list[int]
    """Devices that were asked and of which nothing comes: gone, silent, or cut off."""
    timing: RoundTime
    """How long the devices work, and what that takes; those that are cut off have a row as well."""
    reasons: dict[int, str] = field(default_factory=dict)
    """Why a device that was asked does not train, by its id."""
    began_s: float = field(default_factory=time.perf_counter)
    own_start: frozenset[int] = frozenset()
    """Devices that missed the global model and train on from their own last one."""

    def __len__(self) -> int:
        return len(self.assignments)

    @property
    def tasks(self) -> list[Task]:
        """What the engine is to do."""
        return [
            Task(device, assignment.work)
            for device, assignment in zip(self.devices.ids.tolist(), self.assignments, strict=True)
        ]
