"""Who the devices are: what each can do, where it stands, and who takes part in a round."""

from slimfl.population.population import Device, Population

__all__ = ["Device", "Population"]
