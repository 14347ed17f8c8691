"""One typed, validated description of an experiment.

An experiment is one method under one seed. Every room reads the section that carries its name.
Unknown keys are errors that suggest the nearest known key.
"""

from slimfl.experiment.experiment import OWN, Experiment
from slimfl.experiment.identity import FIRST_DEFAULTS, round_dependencies, round_identity
from slimfl.experiment.loading import (
    Source,
    asked,
    build,
    change,
    dump,
    load,
    read_toml,
    typed_names,
)
from slimfl.experiment.mistakes import known_keys
from slimfl.experiment.sections import (
    DataSection,
    EnergySection,
    FederationSection,
    FlowerSection,
    ModelSection,
    PopulationSection,
    PrivacySection,
    RadioSection,
    Section,
    ServerSection,
    TimeSection,
    TrainingSection,
)
from slimfl.experiment.sections.population import Correlation, DeviceClass, Distribution, Quantity
from slimfl.experiment.sections.radio import CHANNELS

__all__ = [
    "CHANNELS",
    "FIRST_DEFAULTS",
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
    "Source",
    "TimeSection",
    "TrainingSection",
    "asked",
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
