"""One typed, validated description of an experiment.

An experiment is one method under one seed. Every room reads the section that carries its name.
Unknown keys are errors that suggest the nearest known key.
"""

from slimfl.experiment.experiment import Experiment as Experiment
from slimfl.experiment.identity import FIRST_DEFAULTS as FIRST_DEFAULTS
from slimfl.experiment.identity import beginning as beginning
from slimfl.experiment.identity import flat as flat
from slimfl.experiment.identity import round_dependencies as round_dependencies
from slimfl.experiment.identity import round_identity as round_identity
from slimfl.experiment.identity import same_experiment as same_experiment
from slimfl.experiment.identity import same_rounds as same_rounds
from slimfl.experiment.keys import KEYS as KEYS
from slimfl.experiment.loading import Source as Source
from slimfl.experiment.loading import asked as asked
from slimfl.experiment.loading import build as build
from slimfl.experiment.loading import change as change
from slimfl.experiment.loading import dump as dump
from slimfl.experiment.loading import load as load
from slimfl.experiment.loading import points as points
from slimfl.experiment.loading import read_toml as read_toml
from slimfl.experiment.loading import typed_names as typed_names
from slimfl.experiment.sections.learning import DataSection as DataSection
from slimfl.experiment.sections.learning import ModelSection as ModelSection
from slimfl.experiment.sections.learning import TrainingSection as TrainingSection
from slimfl.experiment.sections.population import Correlation as Correlation
from slimfl.experiment.sections.population import DeviceClass as DeviceClass
from slimfl.experiment.sections.population import Distribution as Distribution
from slimfl.experiment.sections.population import PopulationSection as PopulationSection
from slimfl.experiment.sections.population import Quantity as Quantity
from slimfl.experiment.sections.radio import CHANNELS as CHANNELS
from slimfl.experiment.sections.radio import RadioSection as RadioSection
from slimfl.experiment.sections.rounds import EnergySection as EnergySection
from slimfl.experiment.sections.rounds import FederationSection as FederationSection
from slimfl.experiment.sections.rounds import FlowerSection as FlowerSection
from slimfl.experiment.sections.rounds import PrivacySection as PrivacySection
from slimfl.experiment.sections.rounds import ServerSection as ServerSection
from slimfl.experiment.sections.rounds import TimeSection as TimeSection
from slimfl.experiment.sections.section import OWN as OWN
from slimfl.experiment.sections.section import Section as Section

Data = DataSection
Model = ModelSection
Training = TrainingSection
Radio = RadioSection
Federation = FederationSection
