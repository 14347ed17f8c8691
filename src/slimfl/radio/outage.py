"""The paper's channel in a federation: block fading with Shannon thresholds, equation (5).

Decoding works exactly when the gain suffices. A signal lasts until its longest message is through
and has the device's full power for that time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slimfl.config import RadioSection
from slimfl.population import Population
from slimfl.radio.fading import FADING, Fading
from slimfl.radio.links import Floats, Links, Payload, Receptions, State
from slimfl.radio.signals import Signal
from slimfl.radio.units import from_db, watt


@dataclass(frozen=True)
class OutageChannel:
    """Fading gains against the thresholds of successive decoding."""

    noise_dbm: float
    """sigma^2 at the receiver, including any implementation loss."""
    path_loss_exponent: float
    bandwidth_hz: float
    fading: Fading
    needs_payload: bool = False

    def start(self, population: Population, seed: int) -> State:
        """Nothing: fading is new in every round."""
        return {}

    def links(
        self, state: State, round: int, devices: Population, seed: int
    ) -> tuple[Links, State]:
        """Gains drawn from the fading; device k has the k-th draw, whoever else takes part."""
        ids = devices.ids
        gains = self.fading.gains(seed, round, int(ids.max(initial=-1)) + 1)[ids]
        ratio = self.noise_to_power(devices)
        return Links(seed, round, ids, gains, ratio, devices.power_dbm), state

    def receive(
        self, links: Links, signals: Sequence[Signal], payloads: Sequence[Payload] | None
    ) -> Receptions:
        """Devices that send alike are decoded at once."""
        decoded = np.zeros(len(links), np.int64)
        airtime_s = np.zeros(len(links))
        for sent, rows in alike(signals):
            thresholds = sent.coding.thresholds(links.noise_to_power[rows])
            decoded[rows] = (links.gains[rows, None] >= thresholds).sum(axis=1)
            airtime_s[rows] = sent.airtime_s(self.bandwidth_hz)
        energy_j = airtime_s * per_distinct(watt, links.power_dbm)
        return Receptions(decoded, np.ones_like(decoded), airtime_s, energy_j)

    def probabilities(self, devices: Population, signal: Signal) -> Floats:
        """Equation (5)."""
        return self.fading.survival(signal.coding.thresholds(self.noise_to_power(devices)))

    def noise_to_power(self, devices: Population) -> Floats:
        """c / P = sigma^2 d^beta / P of every device."""
        noise = per_distinct(lambda dbm: from_db(self.noise_dbm - dbm), devices.power_dbm)
        loss = per_distinct(lambda metre: metre**self.path_loss_exponent, devices.distance_m)
        return noise * loss


def outage_channel(section: RadioSection) -> OutageChannel:
    """The channel that the `radio` section describes."""
    return OutageChannel(
        section.noise + section.implementation_loss_db,
        section.path_loss_exponent,
        section.bandwidth_hz,
        FADING[section.fading](),
    )


def alike(signals: Sequence[Signal]) -> list[tuple[Signal, NDArray[np.int64]]]:
    """The distinct signals, each with the rows of the devices that send it."""
    rows: dict[int, tuple[Signal, list[int]]] = {}
    for row, sent in enumerate(signals):  # a signal takes longer to hash than to identify
        rows.setdefault(id(sent), (sent, []))[1].append(row)
    return [(sent, np.array(where)) for sent, where in rows.values()]


def per_distinct(function: Callable[[float], float], column: Floats) -> Floats:
    """A function of every value of a column, computed once for each value that occurs."""
    if column.strides == (0,) and len(column):  # one number seen from every row
        return np.broadcast_to(np.float64(function(float(column[0]))), len(column))
    values, where = np.unique(column, return_inverse=True)
    return np.array([function(value) for value in values.tolist()], np.float64)[where]
