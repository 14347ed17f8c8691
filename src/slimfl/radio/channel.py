"""The interface of channels, and what goes in and out of them, as columns over devices.

    signals = what every device puts on the air
    links = what the channel does to every device in this round (generate)
    receptions = what the server gets of every device's signal over its link (receive)

With columns, a million links are a few arrays instead of a million objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from slimfl.devices import Population
from slimfl.radio.coding import Coding, Floats
from slimfl.rng import generators

Indices = NDArray[np.int64]

#: What a channel or a method keeps from round to round: named arrays, which checkpoints can store.
State = dict[str, NDArray[Any]]

#: The bytes that a device transmits, one array per message.
Payload = list[NDArray[np.uint8]]

#: For each message, the (zero-based) segments that it carries.
Messages = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Signal:
    """One device's upload in one round."""

    messages: Messages
    coding: Coding
    segment_bits: tuple[float, ...] = ()
    """The bits of every segment of the network; empty if they are not known."""

    def segments_decoded(self, messages_decoded: int) -> tuple[int, ...]:
        """The segments that arrive with the first messages."""
        return tuple(s for message in self.messages[:messages_decoded] for s in message)

    @property
    def message_bits(self) -> tuple[float, ...]:
        """The bits of every message; empty if the segments' bits are not known."""
        return message_bits(self.messages, self.segment_bits)

    def airtime_s(self, bandwidth_hz: float) -> float:
        """Duration of the signal: that of its longest message."""
        return self.coding.durations_s(self.message_bits, bandwidth_hz)[0]

    def full_power_s(self, bandwidth_hz: float) -> float:
        """The time in which full power would spend the signal's energy."""
        return self.coding.durations_s(self.message_bits, bandwidth_hz)[1]


def message_bits(messages: Messages, segment_bits: Sequence[float]) -> tuple[float, ...]:
    """The bits in every message."""
    if not segment_bits:
        return ()
    return tuple(sum(segment_bits[s] for s in message) for message in messages)


@dataclass(frozen=True, eq=False)
class Links:
    """The radio links of some devices in one round: one row per device.

    A channel that needs more than this adds columns in a subclass.
    """

    seed: int
    round: int
    ids: Indices
    gains: Floats
    """Fading power gain, mean 1 unless the channel says otherwise; NaN where it is not known."""
    noise_to_power: Floats
    """c / P = sigma^2 d^beta / P of each device."""
    power_dbm: Floats
    """Transmit power of each device."""
    later_gains: Floats | None = None
    """[device, attempt after the first]: gains of retransmissions, if they are allowed."""
    decoding_draws: Floats | None = None
    """A uniform number per device, for a decoder that is not certain."""

    def sent(self, signals: Sequence[Signal]) -> Links:
        """The links once it is known what every device puts on the air."""
        return self

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Any) -> Self:
        """The links in these rows."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        taken = {name: each[rows] for name, each in columns.items() if isinstance(each, np.ndarray)}
        return replace(self, **taken)

    @property
    def over_band(self) -> Floats:
        """[device], or [device, subcarrier] where the gains differ over the band."""
        return self.gains

    def random(self, purpose: str) -> Iterator[np.random.Generator]:
        """A generator for every link, for random events in the receiver such as bit errors."""
        return generators(self.seed, purpose, self.round, self.ids.tolist())


@dataclass(frozen=True, eq=False)
class Receptions:
    """The outcome of some devices' signals."""

    decoded: Indices
    """Number of messages decoded in succession."""
    attempts: Indices
    """Number of transmissions, the first included."""
    airtime_s: Floats
    """How long each device is on the air."""
    energy_j: Floats
    """Transmit energy."""
    payloads: Sequence[Payload] | None = None
    """Received bytes, if the channel changes them; None means as sent."""
    slot_share: Floats | None = None
    """Share of its airtime that a device counts for, where devices send at the same time; None
    means all of it."""

    @property
    def counted_s(self) -> Floats:
        """What each device adds to the airtime of the round."""
        return self.airtime_s if self.slot_share is None else self.airtime_s * self.slot_share


class Channel(Protocol):
    """The uplink of all devices.

    It may keep state from round to round (correlated fading), knows each device's distance and
    power, and reports what every upload cost.
    """

    @property
    def needs_payload(self) -> bool:
        """True if `receive` needs the bytes that devices send."""

    def start(self, population: Population, seed: int) -> State:
        """The state before the first round; an empty dictionary if the channel has none."""

    def links(
        self, state: State, round: int, devices: Population, seed: int
    ) -> tuple[Links, State]:
        """The links of the devices that take part in a round, and the state after it.

        Called once per round. Randomness is a function of (seed, purpose, round, device).

        Args:
            state: What `start` or the round before returned.
            round: Number of the round, from 1.
            devices: Those that take part, one row each.
            seed: The experiment's.
        """

    def receive(
        self, links: Links, signals: Sequence[Signal], payloads: Sequence[Payload] | None
    ) -> Receptions:
        """What the server receives.

        Args:
            links: As `links` generated them; `links.gains` are reported values if devices measure
                them.
            signals: One per link. Devices that send alike share one object.
            payloads: One per link, or None unless `needs_payload`.
        """

    def probabilities(self, devices: Population, signal: Signal) -> Floats | None:
        """[device, message]: the probability that a message and all before it are decoded.

        None if the channel has no closed form; reports then show no expected value.
        """
