"""The energy of computing in joules, by named presets.

The presets differ by two orders of magnitude, so joules are always reported together with the
preset. All of them are compute-bound: the energy is proportional to the multiply-adds, and so the
ratio between two widths or two methods on one device does not depend on the preset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from slimfl.devices.population import DEFAULT_ENERGY, Population
from slimfl.errors import RequestError

Floats = NDArray[np.float64]


class EnergyModel(Protocol):
    """Joule per multiply-add of a device, given its speed."""

    @property
    def source(self) -> str:
        """Where the numbers come from."""

    @property
    def needs_speed(self) -> bool:
        """True if it needs the speed of a device."""

    def joule_per_mac(self, macs_per_s: Floats) -> Floats:
        """One value per device."""


@dataclass(frozen=True)
class PerOperation:
    """A fixed energy per multiply-add, whatever the speed."""

    joule: float
    source: str
    int8_joule: float | None = None
    """Energy in eight-bit integers, if the source states it."""
    needs_speed: bool = False

    def joule_per_mac(self, macs_per_s: Floats) -> Floats:
        """The same for all devices."""
        return np.full(len(macs_per_s), self.joule)


@dataclass(frozen=True)
class KappaFrequencySquared:
    """kappa f^2 per clock cycle, the convention of most papers on edge computing.

    The clock frequency follows from the speed: f = macs_per_s * cycles_per_mac. It is a convention,
    not a measurement: arXiv 2605.27601 shows that it is inaccurate on heterogeneous ARM phones.
    """

    kappa: float
    cycles_per_mac: float
    source: str
    needs_speed: bool = True

    def joule_per_mac(self, macs_per_s: Floats) -> Floats:
        """kappa f^2 times the cycles of one multiply-add."""
        frequency_hz = macs_per_s * self.cycles_per_mac
        return np.asarray(self.kappa * self.cycles_per_mac * frequency_hz**2)


@dataclass(frozen=True)
class BoardPower:
    """A board that draws a measured power for as long as it computes."""

    watt: float
    source: str
    needs_speed: bool = True

    def joule_per_mac(self, macs_per_s: Floats) -> Floats:
        """The power times the time of one multiply-add."""
        return np.asarray(self.watt / macs_per_s)


#: Computing without a cost, as in the paper, which counts transmit energy alone.
NONE = "none"

ENERGY_PRESETS: dict[str, EnergyModel] = {
    NONE: PerOperation(0.0, "computing is not counted, as in the paper"),
    "horowitz-45nm": PerOperation(
        4.6e-12,
        "Horowitz, ISSCC 2014, 45 nm: FP32 multiply 3.7 pJ + FP32 add 0.9 pJ, no memory access; "
        "INT8 multiply 0.2 pJ + INT32 add 0.1 pJ",
        int8_joule=(0.2 + 0.1) * 1e-12,
    ),
    "kappa-1e-28": KappaFrequencySquared(
        1e-28, 1.0, "kappa f^2 with kappa 1e-28 and 1 cycle per multiply-add (edge computing)"
    ),
    "kappa-1e-27": KappaFrequencySquared(
        1e-27, 1.0, "kappa f^2 with kappa 1e-27 and 1 cycle per multiply-add (vehicles, RIS)"
    ),
    "raspberry-pi-4": BoardPower(
        5.14, "ns3-fl's fit of a Raspberry Pi 4: 5.14 W of the board while it trains Fashion-MNIST"
    ),
}


def joule_per_mac(population: Population, default: str) -> Floats:
    """Energy of one multiply-add per device; `default` is for devices without their own preset."""
    cost = np.zeros(len(population))
    for index, name in enumerate(population.energy_names):
        rows = population.energy == index
        if not rows.any():
            continue
        preset = default if name == DEFAULT_ENERGY else name
        if preset not in ENERGY_PRESETS:
            raise RequestError(
                f"there is no energy preset {preset!r}; choose from {', '.join(ENERGY_PRESETS)}"
            )
        model = ENERGY_PRESETS[preset]
        if model.needs_speed and not np.isfinite(population.macs_per_s[rows]).all():
            raise RequestError(
                f"the energy preset {preset!r} depends on the speed of a device; give macs_per_s "
                "in population.classes, or choose another energy.preset"
            )
        cost[rows] = model.joule_per_mac(population.macs_per_s[rows])
    return cost


def presets_used(population: Population, default: str) -> list[str]:
    """The presets behind a run's joules, in the order of the population's names."""
    used = [population.energy_names[i] for i in np.unique(population.energy).tolist()]
    return list(dict.fromkeys(default if name == DEFAULT_ENERGY else name for name in used))
