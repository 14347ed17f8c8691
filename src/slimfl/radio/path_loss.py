"""Path loss: the mean attenuation at a distance.

* the paper's power law d^beta, without a reference distance or a frequency;
* free space, (4 pi d f / c)^2 (Friis 1946; ITU-R P.525);
* UMi (street canyon) and UMa of 3GPP TR 38.901, table 7.4.1-1, in line of sight (LOS) or not
  (NLOS), with the LOS probability of table 7.4.2-1.

Losses of the last two are in dB as 3GPP prints them, f in GHz and distances in metres. Distance
means the one over ground; d_3D adds the difference of the antenna heights. The formulas hold from
10 m to 5 km; a device nearer than 10 m counts as at 10 m.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from slimfl.experiment import RadioSection
from slimfl.radio.fading import SPEED_OF_LIGHT_M_S
from slimfl.rng import generator
from slimfl.units import from_db

Floats = NDArray[np.float64]

#: Effective environment height: TR 38.901, note 1 of table 7.4.1-1.
ENVIRONMENT_HEIGHT_M = 1.0
NEAREST_M = 10.0
#: Above this many devices, sorting the distances costs more than it saves.
MANY = 1 << 14


@dataclass(frozen=True)
class Case:
    """One state of a link (such as line of sight), with its probability per device and its loss."""

    probability: Floats
    loss: Floats
    """Power ratio."""
    shadowing_db: float
    """The model's own deviation; 0 if it has none."""


class PathLoss(Protocol):
    """The loss between a device and the server."""

    def cases(self, distance_m: Floats) -> list[Case]:
        """The possible states of links at these distances."""


@dataclass(frozen=True)
class PowerLaw:
    """The paper's d^beta."""

    exponent: float

    def cases(self, distance_m: Floats) -> list[Case]:
        """A single case."""
        loss = per_distinct(lambda metre: metre**self.exponent, distance_m)
        return [Case(np.ones(()), loss, 0.0)]


@dataclass(frozen=True)
class FixedLoss:
    """The same at any distance: one case of another model."""

    loss: float
    """Power ratio."""
    shadowing_db: float = 0.0

    def cases(self, distance_m: Floats) -> list[Case]:
        """A single case."""
        return [Case(np.ones(()), np.full(len(distance_m), self.loss), self.shadowing_db)]


@dataclass(frozen=True)
class FreeSpace:
    """Nothing in the way: 32.45 + 20 log10(f / MHz) + 20 log10(d / km) in dB."""

    carrier_hz: float

    def cases(self, distance_m: Floats) -> list[Case]:
        """A single case."""
        waves = np.asarray(distance_m) * (self.carrier_hz / SPEED_OF_LIGHT_M_S)
        return [Case(np.ones(()), np.asarray((4 * np.pi * waves) ** 2), 0.0)]


@dataclass(frozen=True)
class Scenario:
    """The numbers of one scenario of TR 38.901."""

    server_height_m: float
    near: tuple[float, float]
    """LOS, up to the breakpoint: constant, and factor of log10(d_3D)."""
    breakpoint_factor: float
    nlos: tuple[float, float, float, float]
    """Constant, factors of log10(d_3D) and log10(f / GHz), and dB per metre above 1.5 m."""
    los_decay_m: float
    los_shadowing_db: float
    nlos_shadowing_db: float


SCENARIOS = {
    "umi": Scenario(10.0, (32.4, 21.0), 9.5, (22.4, 35.3, 21.3, 0.3), 36.0, 4.0, 7.82),
    "uma": Scenario(25.0, (28.0, 22.0), 9.0, (13.54, 39.08, 20.0, 0.6), 63.0, 4.0, 6.0),
}


@dataclass(frozen=True)
class Urban:
    """UMi or UMa for devices up to 13 m high; higher ones see over the roofs."""

    scenario: Scenario
    carrier_hz: float
    line_of_sight: Literal["drawn", "always", "never"] = "drawn"
    server_height_m: float | None = None
    device_height_m: float = 1.5

    def cases(self, distance_m: Floats) -> list[Case]:
        """In line of sight, or not."""
        distance = np.maximum(np.asarray(distance_m, np.float64), NEAREST_M)
        seen = self.los_probability(distance)
        both = [
            Case(seen, from_db(self.los_db(distance)), self.scenario.los_shadowing_db),
            Case(1 - seen, from_db(self.nlos_db(distance)), self.scenario.nlos_shadowing_db),
        ]
        if self.line_of_sight == "drawn":
            return both
        chosen = both[0 if self.line_of_sight == "always" else 1]
        return [Case(np.ones(()), chosen.loss, chosen.shadowing_db)]

    def los_probability(self, distance_m: Floats) -> Floats:
        """Table 7.4.2-1."""
        near = 18.0 / np.maximum(distance_m, 18.0)
        return np.asarray(near + np.exp(-distance_m / self.scenario.los_decay_m) * (1 - near))

    def los_db(self, distance_m: Floats) -> Floats:
        """PL_1 up to the breakpoint, PL_2 beyond."""
        constant, slope = self.scenario.near
        frequency = 20 * np.log10(self.carrier_hz / 1e9)
        log_distance = np.log10(self._3d(distance_m))
        turn = self.breakpoint_m
        beyond = self.scenario.breakpoint_factor * np.log10(turn**2 + self._heights**2)
        near = constant + slope * log_distance + frequency
        far = constant + 40 * log_distance + frequency - beyond
        return np.asarray(np.where(distance_m <= turn, near, far))

    def nlos_db(self, distance_m: Floats) -> Floats:
        """Never less than in line of sight."""
        constant, slope, frequency, height = self.scenario.nlos
        loss = (
            constant
            + slope * np.log10(self._3d(distance_m))
            + frequency * np.log10(self.carrier_hz / 1e9)
            - height * (self.device_height_m - 1.5)
        )
        return np.asarray(np.maximum(loss, self.los_db(distance_m)))

    @property
    def breakpoint_m(self) -> float:
        """d'_BP = 4 h'_BS h'_UT f_c / c."""
        above = (self._server - ENVIRONMENT_HEIGHT_M) * (
            self.device_height_m - ENVIRONMENT_HEIGHT_M
        )
        return 4 * above * self.carrier_hz / SPEED_OF_LIGHT_M_S

    @property
    def _server(self) -> float:
        given = self.server_height_m
        return self.scenario.server_height_m if given is None else given

    @property
    def _heights(self) -> float:
        return self._server - self.device_height_m

    def _3d(self, distance_m: Floats) -> Floats:
        return np.asarray(np.hypot(distance_m, self._heights))


def build_path_loss(section: RadioSection) -> PathLoss:
    """The model that the `radio` section names."""
    match section.path_loss:
        case "power-law":
            return PowerLaw(section.path_loss_exponent)
        case "free-space":
            return FreeSpace(section.carrier_hz)
        case scenario:
            return Urban(
                SCENARIOS[scenario],
                section.carrier_hz,
                section.line_of_sight,
                section.server_height_m,
                section.device_height_m,
            )


def drawn_case(cases: list[Case], seed: int, ids: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Which case every device is in; the same in all rounds, as long as it stays where it is.

    None where there is only one.
    """
    if len(cases) == 1:
        return None
    uniform = generator(seed, "line-of-sight").random(int(ids.max(initial=-1)) + 1)[ids]
    return (uniform >= cases[0].probability).astype(np.int64)


def per_distinct(function: Callable[[Any], Any], column: Floats) -> Floats:
    """A function of every value of a column, computed once for each value that occurs.

    The function must take arrays too: with more devices than `MANY` they are computed at once.
    """
    if column.strides == (0,) and len(column):  # one number seen from every row
        return np.broadcast_to(np.float64(function(float(column[0]))), len(column))
    if len(column) > MANY:
        return np.asarray(function(column))
    values, where = np.unique(column, return_inverse=True)
    return np.array([function(value) for value in values.tolist()], np.float64)[where]
