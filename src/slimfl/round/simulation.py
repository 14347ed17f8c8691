"""A federation in this process: a setting, its state, and the loop's two halves of a round."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import nn

from slimfl.engines import Engine, Outcome
from slimfl.experiment import Experiment
from slimfl.nn import Vector, load_flat
from slimfl.round import rounds
from slimfl.round.asynchronous import Asynchronous
from slimfl.round.setting import Setting
from slimfl.round.state import RunState, space_warning, taking_part
from slimfl.round.uploads import Plan
from slimfl.runs.storage.record import RoundRecord

log = logging.getLogger(__name__)


class Simulation:
    """Runs an experiment round by round.

    Args:
        experiment: What to run.
        given: Objects that replace what the experiment names, see `Setting`.
    """

    def __init__(self, experiment: Experiment, **given: Any) -> None:
        self.setting = Setting(experiment, **given)
        self.state = RunState(self.setting)
        if self.experiment.time.mode == "asynchronous":
            self.state.asynchronous = Asynchronous(self.setting, self.state)

    @property
    def experiment(self) -> Experiment:
        """The experiment with everything resolved that an engine decides."""
        return self.setting.experiment

    @property
    def engine(self) -> Engine:
        """The engine that trains and tests."""
        return self.setting.engine

    @property
    def round(self) -> int:
        """The number of rounds done."""
        return self.state.round

    @property
    def global_model(self) -> Vector:
        """The global model, flat."""
        return self.state.model

    def step(self) -> RoundRecord:
        """Run one round and return its record."""
        if self.state.asynchronous is not None:
            return self.state.asynchronous.step()
        return rounds.step(self.setting, self.state)

    def plan(self) -> Plan:
        """Plan the next round."""
        return rounds.plan(self.setting, self.state)

    def outcomes(self, plan: Plan) -> Iterator[Outcome]:
        """What the devices of a plan learn."""
        return rounds.train(self.setting, self.state, plan)

    def collect(self, plan: Plan, outcomes: Iterator[Outcome]) -> RoundRecord:
        """Receive and merge what devices have learned, and return the record of the round."""
        return rounds.collect(self.setting, self.state, plan, outcomes)

    def keep_states_in(self, folder: Path | None) -> None:
        """Set the folder for the states of many devices; None is the folder for temporary files."""
        self.engine.states.folder = folder
        space = space_warning(self.experiment, len(self.global_model), folder)
        warnings = [*self.setting.oddities, space]
        if self.state.last_segments is not None:
            devices = taking_part(self.experiment)
            warnings.append(self.state.last_segments.memory_warning(devices))
        for warning in filter(None, warnings):
            log.warning("%s", warning)

    def trained_network(self) -> nn.Module:
        """The network, loaded with the global model."""
        load_flat(self.setting.network, self.global_model)
        return self.setting.network
