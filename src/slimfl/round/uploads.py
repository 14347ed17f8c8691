"""The values that a round passes on: the plan, with a row per device, and the devices' uploads."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from slimfl.devices import Population
from slimfl.engines import Task
from slimfl.methods import Positions, State, Work
from slimfl.nn import Vector
from slimfl.radio import Links, Payload, Receptions, Signal
from slimfl.round.clock import RoundTime, WorkCosts
from slimfl.round.reasons import NO_ANSWER


@dataclass(frozen=True, eq=False)
class Plan:
    """A round before it is run; one row per device that trains."""

    round: int
    model: Vector
    """The global model that devices train from."""
    devices: Population
    work: list[Work]
    signals: list[Signal]
    links: Links
    channel_state: State
    """State of the channel after this round."""
    costs: WorkCosts
    """Time and energy of the work, also of devices that are cut off before its end."""
    receptions: Receptions | None = None
    """What the server will decode, where that must be known before anybody trains."""
    unable: list[int] = field(default_factory=list)
    """Devices to which the method gave no work."""
    absent: list[int] = field(default_factory=list)
    """Devices that were asked and will not deliver: empty, silent, or cut off."""
    reasons: dict[int, str] = field(default_factory=dict)
    """Why a device that was asked does not train, by device id."""
    timing: RoundTime | None = None
    """When the round ends, where that decides who is in time; None while nothing does."""
    own_start: frozenset[int] = frozenset()
    """Devices that missed the global model and train on from their own last one."""
    began_s: float = field(default_factory=time.perf_counter)

    def __len__(self) -> int:
        return len(self.work)

    @property
    def tasks(self) -> list[Task]:
        """The plan's work for the engine."""
        ids: list[int] = self.devices.ids.tolist()
        return [Task(device, work) for device, work in zip(ids, self.work, strict=True)]

    def take(self, rows: NDArray[np.int64]) -> Plan:
        """The plan for some of its devices; costs stay those of all."""
        return replace(
            self,
            devices=self.devices.take(rows),
            work=[self.work[row] for row in rows],
            signals=[self.signals[row] for row in rows],
            links=self.links.take(rows),
            receptions=None if self.receptions is None else taken(self.receptions, rows),
        )


@dataclass(eq=False, slots=True)
class Upload:
    """One device's update on its way to the server; stages change it."""

    row: int
    """Its row in the plan."""
    device: int
    work: Work
    signal: Signal
    missing: str = ""
    """Why nothing usable came, `no answer` or `refused`, or that it was `clipped`; else empty."""
    parameters: Vector | None = None
    """The whole vector, as it is sent, and behind the radio as it was received; None without an
    answer. The array itself is not changed."""
    where: Positions | None = None
    """The parameters that have arrived; None before the radio, and if nothing has."""
    weight: float = 1.0
    samples: int = 0
    """Number of samples of the device."""
    losses: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """Mean training loss per width."""
    images_seen: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """Number of images per width."""
    payload: Payload | None = None
    """The bytes of every message, for a channel that changes them."""
    gain: float = 0.0
    noise_to_power: float = 0.0
    power_dbm: float = 0.0
    decoded: int = 0
    """Number of messages decoded in succession."""
    attempts: int = 0
    airtime_s: float = 0.0
    slot_share: float = 1.0
    """The part of its airtime that it counts for, where devices send at the same time."""
    energy_j: float = 0.0

    @property
    def answered(self) -> bool:
        """True if the device completed its work."""
        return self.missing != NO_ANSWER

    @property
    def sent(self) -> tuple[int, ...]:
        """The segments that it should deliver."""
        return self.signal.segments_decoded(len(self.signal.messages))

    @property
    def arrived(self) -> tuple[int, ...]:
        """The segments that were decoded."""
        return self.signal.segments_decoded(self.decoded)


def taken(receptions: Receptions, rows: NDArray[np.int64]) -> Receptions:
    """The receptions in these rows."""
    share = receptions.slot_share
    return Receptions(
        receptions.decoded[rows],
        receptions.attempts[rows],
        receptions.airtime_s[rows],
        receptions.energy_j[rows],
        slot_share=None if share is None else share[rows],
    )


def work_rows(work: Sequence[Work], widths: int) -> NDArray[np.int64]:
    """What is still needed of work once a device has trained, one row of numbers per upload.

    Args:
        work: The work of each device.
        widths: Number of widths of the network.

    Returns:
        For each device, whether one width was drawn per batch, whether each width was trained, and
        the message that carries each segment, counted from 1; 0 if none does.
    """
    rows = np.zeros((len(work), 1 + 2 * widths), np.int64)
    for row, each in zip(rows, work, strict=True):
        row[0] = each.visit == "one"
        row[1 : 1 + widths][list(each.widths)] = 1
        for number, message in enumerate(each.messages, 1):
            row[1 + widths :][list(message)] = number
    return rows


def work_of_row(row: NDArray[np.int64]) -> Work:
    """The inverse of a row of `work_rows`."""
    widths, carried = np.split(row[1:], 2)
    numbers = range(1, int(carried.max()) + 1)
    messages = tuple(tuple(np.flatnonzero(carried == number).tolist()) for number in numbers)
    visit = "one" if row[0] else "all"
    return Work(tuple(np.flatnonzero(widths).tolist()), messages, visit=visit)
