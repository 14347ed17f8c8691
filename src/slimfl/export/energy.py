"""Joules per image from multiply-adds: a convention that must be named, not a measurement.

Presets differ by two to three orders of magnitude; ratios between widths are the same in all. Bytes
moved from memory are left out.
"""

from dataclasses import dataclass

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


def _processor(kappa: float, frequency_ghz: float) -> EnergyPreset:
    """A processor that does one multiply-add per cycle, each of kappa f^2 joules."""
    joules = kappa * (frequency_ghz * 1e9) ** 2
    name = f"kappa-{kappa:.0e}-{frequency_ghz:g}ghz"
    return EnergyPreset(
        name,
        joules,
        joules,
        f"kappa f^2 per cycle, kappa {kappa:g}, {frequency_ghz:g} GHz, one multiply-add per cycle",
    )


PRESETS = {
    preset.name: preset
    for preset in (
        EnergyPreset(
            "horowitz-45nm",
            float32_j=(3.7 + 0.9) * 1e-12,
            int8_j=(0.2 + 0.1) * 1e-12,
            source="Horowitz, ISSCC 2014, 45 nm, 0.9 V: arithmetic alone, FP32 multiply and add, "
            "or INT8 multiply and INT32 add",
        ),
        _processor(1e-28, 1),
        _processor(1e-28, 2),
        _processor(1e-27, 1),
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
