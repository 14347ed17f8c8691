"""The devices: what each can do, where it is, and who takes part in a round."""

from slimfl.devices.devices_csv import population_digest, read_devices, write_devices
from slimfl.devices.drawing import population_of
from slimfl.devices.participation import widest_widths
from slimfl.devices.population import Device, Population

__all__ = [
    "Device",
    "Population",
    "population_digest",
    "population_of",
    "read_devices",
    "widest_widths",
    "write_devices",
]
