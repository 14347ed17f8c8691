"""The sections of an experiment: every key with its type, its default and its meaning."""

from slimfl.experiment.sections.around import CallbackSection, FlowerSection, StageSection
from slimfl.experiment.sections.data import DataSection
from slimfl.experiment.sections.model import ModelSection
from slimfl.experiment.sections.population import PopulationSection
from slimfl.experiment.sections.radio import RadioSection
from slimfl.experiment.sections.rounds import FederationSection, PrivacySection, ServerSection
from slimfl.experiment.sections.section import Section
from slimfl.experiment.sections.time import EnergySection, TimeSection
from slimfl.experiment.sections.training import TrainingSection

__all__ = [
    "CallbackSection",
    "DataSection",
    "EnergySection",
    "FederationSection",
    "FlowerSection",
    "ModelSection",
    "PopulationSection",
    "PrivacySection",
    "RadioSection",
    "Section",
    "ServerSection",
    "StageSection",
    "TimeSection",
    "TrainingSection",
]
