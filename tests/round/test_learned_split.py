"""A split that the server learns: it follows the devices, and survives a stop."""

import numpy as np
import pytest

from slimfl import experiment as config
from slimfl.errors import RequestError
from slimfl.round import Simulation
from tests import asking

KEYS = {
    "rounds": 12,
    "method": "slimfl",
    "data__dataset": "synthetic",
    "data__train_samples": 400,
    "data__test_samples": 50,
    "federation__devices": 12,
    "training__steps": 1,
    "population__preset": "cell",
    "radio__split": "learned",
    "radio__split_objective": "weighted",
    "threads": 1,
}


def experiment(**changes: object) -> config.Experiment:
    return asking.load(**{**KEYS, **changes})[0]


def test_near_and_far_devices_are_told_apart_by_what_arrives() -> None:
    simulation = Simulation(experiment(rounds=150, radio__split_drift_db=0.0))
    for _ in range(150):
        simulation.step()
    assert simulation.state.belief is not None
    true = simulation.setting.channel.noise_to_power(simulation.setting.population)
    believed = simulation.state.belief.noise_to_power(simulation.setting.population.ids)
    assert np.corrcoef(np.log(true), np.log(believed))[0, 1] > 0.9
    assert np.abs(np.log(believed / true)).mean() < 0.5


def test_it_needs_rounds() -> None:
    with pytest.raises(RequestError, match="learns round by round"):
        experiment(time__mode="asynchronous")
