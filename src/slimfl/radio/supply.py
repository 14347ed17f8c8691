"""Energy that sending draws from a device's supply: E = (P / eta + P_circuit) t."""

from dataclasses import replace

from slimfl.experiment import EnergySection
from slimfl.radio.links import Receptions


def drawn(section: EnergySection, receptions: Receptions) -> Receptions:
    """Receptions with the energy drawn from the supply; by default the radiated energy."""
    if section.amplifier_efficiency == 1 and section.circuit_power_w == 0:
        return receptions
    radiated = receptions.energy_j / section.amplifier_efficiency
    return replace(receptions, energy_j=radiated + section.circuit_power_w * receptions.airtime_s)
