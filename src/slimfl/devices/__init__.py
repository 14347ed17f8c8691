"""The devices: what each can do, where it is, and who takes part in a round."""

from slimfl.devices.devices_csv import population_digest as population_digest
from slimfl.devices.devices_csv import read_devices as read_devices
from slimfl.devices.devices_csv import write_devices as write_devices
from slimfl.devices.drawing import population_of as population_of
from slimfl.devices.participation import widest_widths as widest_widths
from slimfl.devices.population import Device as Device
from slimfl.devices.population import Population as Population
