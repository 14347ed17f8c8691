"""One typed, validated description of an experiment.

An experiment is one method under one seed. Every room reads the section that carries its name.
Unknown keys are errors that suggest the nearest known key.
"""

from slimfl.config.base import Section
from slimfl.config.identity import round_dependencies, round_identity
from slimfl.config.loading import build, change, dump, load, read_toml, typed_names
from slimfl.config.mistakes import known_keys
from slimfl.config.population import (
    Correlation,
    DeviceClass,
    Distribution,
    PopulationSection,
    Quantity,
)
from slimfl.config.sections import (
    CHANNELS,
    OWN,
    DataSection,
    Experiment,
    FederationSection,
    FlowerSection,
    ModelSection,
    PrivacySection,
    RadioSection,
    ServerSection,
    TrainingSection,
)
from slimfl.config.time import EnergySection, TimeSection

__all__ = [
    "CHANNELS",
    "OWN",
    "Correlation",
    "DataSection",
    "DeviceClass",
    "Distribution",
    "EnergySection",
    "Experiment",
    "FederationSection",
    "FlowerSection",
    "ModelSection",
    "PopulationSection",
    "PrivacySection",
    "Quantity",
    "RadioSection",
    "Section",
    "ServerSection",
    "TimeSection",
    "TrainingSection",
    "build",
    "change",
    "dump",
    "known_keys",
    "load",
    "read_toml",
    "round_dependencies",
    "round_identity",
    "typed_names",
]
