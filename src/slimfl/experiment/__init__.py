"""One typed, validated description of an experiment.

An experiment is one method under one seed. Every room reads the section that carries its name.
Unknown keys are errors that suggest the nearest known key.
"""

from slimfl.experiment.experiment import Experiment
from slimfl.experiment.identity import (
    FIRST_DEFAULTS,
    beginning,
    flat,
    round_dependencies,
    round_identity,
    same_experiment,
    same_rounds,
)
from slimfl.experiment.loading import (
    Source,
    asked,
    build,
    change,
    dump,
    load,
    points,
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
from slimfl.experiment.sections import DataSection as Data
from slimfl.experiment.sections import FederationSection as Federation
from slimfl.experiment.sections import ModelSection as Model
from slimfl.experiment.sections import RadioSection as Radio
from slimfl.experiment.sections import TrainingSection as Training
from slimfl.experiment.sections.population import Correlation, DeviceClass, Distribution, Quantity
from slimfl.experiment.sections.radio import CHANNELS
from slimfl.experiment.sections.section import OWN

__all__ = [
    "CHANNELS",
    "FIRST_DEFAULTS",
    "OWN",
    "Correlation",
    "Data",
    "DataSection",
    "DeviceClass",
    "Distribution",
    "EnergySection",
    "Experiment",
    "Federation",
    "FederationSection",
    "FlowerSection",
    "Model",
    "ModelSection",
    "PopulationSection",
    "PrivacySection",
    "Quantity",
    "Radio",
    "RadioSection",
    "Section",
    "ServerSection",
    "Source",
    "TimeSection",
    "Training",
    "TrainingSection",
    "asked",
    "beginning",
    "build",
    "change",
    "dump",
    "flat",
    "known_keys",
    "load",
    "points",
    "read_toml",
    "round_dependencies",
    "round_identity",
    "same_experiment",
    "same_rounds",
    "typed_names",
]
