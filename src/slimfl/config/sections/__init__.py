"""The sections of an experiment: every key with its type, its default and its meaning."""

from slimfl.config.sections.around import CallbackSection, FlowerSection
from slimfl.config.sections.data import DataSection
from slimfl.config.sections.model import ModelSection
from slimfl.config.sections.population import PopulationSection
from slimfl.config.sections.radio import RadioSection
from slimfl.config.sections.rounds import FederationSection, PrivacySection, ServerSection
from slimfl.config.sections.section import Section
from slimfl.config.sections.time import EnergySection, TimeSection
from slimfl.config.sections.training import TrainingSection

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
    "TimeSection",
    "TrainingSection",
]
