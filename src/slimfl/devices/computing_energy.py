"""The energy of computing in joules, by named presets.

The presets differ by two orders of magnitude, so joules are always reported together with the
preset. All of them are compute-bound: the energy is proportional to the multiply-adds, and so the
ratio between two widths or two methods on one device does not depend on the preset.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slimfl.devices.population import DEFAULT_ENERGY, Population
from slimfl.errors import RequestError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class EnergyModel:
    """The energy of a multiply-add: a constant, a convention, or a measured power."""

    source: str
    """Where the numbers come from."""
    joule: float = 0.0
    """Per multiply-add, whatever the speed, where neither of the following is given."""
    int8_joule: float | None = None
    """The same in eight-bit integers, if the source states it."""
    kappa: float | None = None
    """kappa f^2 per clock cycle, with one cycle per multiply-add, so that the clock frequency f is
    the speed: the convention of most papers on edge computing. It is not a measurement: arXiv
    2605.27601 shows that it is inaccurate on heterogeneous ARM phones.
    """
    watt: float | None = None
    """What a board draws for as long as it computes."""

    @property
    def needs_speed(self) -> bool:
        """True if it needs the speed of a device."""
        return self.kappa is not None or self.watt is not None

    def joule_per_mac(self, macs_per_s: Floats) -> Floats:
        """[device]: joule per multiply-add at these speeds."""
        if self.kappa is not None:
            return np.asarray(self.kappa * macs_per_s**2)
        if self.watt is not None:
            return np.asarray(self.watt / macs_per_s)
        return np.full(len(macs_per_s), self.joule)


#: Computing without a cost, as in the paper, which counts transmit energy alone.
NONE = "none"

ENERGY_PRESETS = {
    name: EnergyModel(**each)
    for name, each in tomllib.loads(Path(__file__).with_suffix(".toml").read_text()).items()
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
