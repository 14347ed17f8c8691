"""The input and output of a channel, as columns over devices.

    links = what the channel does to every device in this round (generate)
    receptions = what the server gets of every device's signal over its link (receive)

With columns, a million links are a few arrays instead of a million objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimfl.rng import generators

Floats = NDArray[np.float64]

#: What a channel or a method keeps from round to round: named arrays, which checkpoints can store.
State = dict[str, NDArray[Any]]

#: The bytes that a device transmits, one array per message.
Payload = list[NDArray[np.uint8]]


@dataclass(frozen=True, eq=False)
class Links:
    """The radio links of some devices in one round."""

    seed: int
    round: int
    ids: NDArray[np.int64]
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
    partner_snr: Floats | None = None
    """g P/c of the device that sends at the same time; 0 where none does."""
    subcarrier_gains: Floats | None = None
    """[device, subcarrier]: power gains over the band, where they differ; `gains` is their mean."""
    partner_row: NDArray[np.int64] | None = None
    """Which of these links that device's is; -1 where none sends at the same time."""
    partner_signal: NDArray[np.object_] | None = None
    """What that device puts on the air, once it is known; None in its place where none sends."""

    def sent(self, signals: Sequence[Any]) -> Links:
        """The links once it is known what every device puts on the air."""
        if self.partner_row is None:
            return self
        partners = np.empty(len(self), np.object_)
        for row, partner in enumerate(self.partner_row.tolist()):
            partners[row] = None if partner < 0 else signals[partner]
        # rows of a part of these links would mean others
        return replace(self, partner_row=None, partner_signal=partners)

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Any) -> Links:
        """The links in these rows."""
        columns = (
            self.ids,
            self.gains,
            self.noise_to_power,
            self.power_dbm,
            self.later_gains,
            self.decoding_draws,
            self.partner_snr,
            self.subcarrier_gains,
            self.partner_row,
            self.partner_signal,
        )
        taken = (None if column is None else column[rows] for column in columns)
        return Links(self.seed, self.round, *taken)  # type: ignore[arg-type]

    def over_band(self, row: int) -> Floats:
        """The power gains of one link over the band: one where it is flat."""
        if self.subcarrier_gains is not None:
            return np.asarray(self.subcarrier_gains[row])
        return self.gains[row : row + 1]

    def random(self, purpose: str) -> Iterator[np.random.Generator]:
        """A generator for every link, for random events in the receiver such as bit errors."""
        return generators(self.seed, purpose, self.round, self.ids.tolist())


@dataclass(frozen=True, eq=False)
class Receptions:
    """The outcome of some devices' signals."""

    decoded: NDArray[np.int64]
    """Number of messages decoded in succession."""
    attempts: NDArray[np.int64]
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
