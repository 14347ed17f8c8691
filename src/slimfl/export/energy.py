"""Joules per image from multiply-adds: a convention that must be named, not a measurement.

The numbers are those of the simulation (`slimfl.devices.computing_energy`). Presets differ by
two to three orders of magnitude; ratios between widths are the same in all. Memory accesses are
left out.
"""

from dataclasses import dataclass

import numpy as np

from slimfl.devices.computing_energy import ENERGY_PRESETS, PerOperation
from slimfl.errors import RequestError


@dataclass(frozen=True)
class EnergyPreset:
    """Energy of one multiply-add by precision."""

    name: str
    float32_j: float
    int8_j: float
    source: str

    def joules(self, multiply_adds: int, precision: str = "float32") -> float:
        """Energy of one image."""
        return multiply_adds * (self.int8_j if precision == "int8" else self.float32_j)


def _fixed(name: str) -> EnergyPreset:
    model = ENERGY_PRESETS[name]
    assert isinstance(model, PerOperation)
    int8_j = model.joule if model.int8_joule is None else model.int8_joule
    return EnergyPreset(name, model.joule, int8_j, model.source)


def _at_frequency(name: str, frequency_ghz: int) -> EnergyPreset:
    """A preset that depends on the speed, at one clock frequency."""
    model = ENERGY_PRESETS[name]
    joules = float(model.joule_per_mac(np.array([frequency_ghz * 1e9]))[0])
    source = f"{model.source}, {frequency_ghz} GHz"
    return EnergyPreset(f"{name}-{frequency_ghz}ghz", joules, joules, source)


PRESETS = {
    preset.name: preset
    for preset in (
        _fixed("horowitz-45nm"),
        _at_frequency("kappa-1e-28", 1),
        _at_frequency("kappa-1e-28", 2),
        _at_frequency("kappa-1e-27", 1),
    )
}

DEFAULT = "horowitz-45nm"


def preset(name: str) -> EnergyPreset:
    """The preset of that name.

    >>> f"{preset('kappa-1e-28-1ghz').float32_j:.1e}"
    '1.0e-10'
    """
    if name not in PRESETS:
        raise RequestError(f"there is no energy preset {name!r}; choose {', '.join(PRESETS)}")
    return PRESETS[name]
