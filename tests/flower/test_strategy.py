"""The strategy: Flower's own loop gives the numbers of slimfl's."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from fake_grid import federation
from flwr.app import ConfigRecord

from slimfl.experiment import build
from slimfl.flower import SlimFLStrategy
from slimfl.flower.messages import read_parameters
from slimfl.radio import OutageChannel, outage_channel
from slimfl.round import Simulation, run


def experiment(engine, **federation_changes):
    return build(
        {
            "rounds": 3,
            "engine": engine,
            "threads": 1,
            "data": {"dataset": "synthetic"},
            "training": {"steps": 2, "batch_size": 64},
            "federation": {"devices": 4, "participation": 0.75, **federation_changes},
            "flower": {"device_engine": "torch", "wait_s": 0.1},
        }
    )


def test_the_strategy_gives_the_numbers_of_slimfls_own_loop():
    grid = federation(4)
    strategy = SlimFLStrategy(experiment("flower"), grid)
    result = strategy.start(grid, strategy.initial_arrays(), num_rounds=3)
    here = Simulation(experiment("torch"))
    lines = run(here)
    np.testing.assert_array_equal(read_parameters(result.arrays), here.global_model)
    for line, expected in zip(strategy.lines, lines, strict=True):
        assert {**line, "seconds": 0} == {**expected, "seconds": 0}
    told = result.train_metrics_clientapp[3]
    assert told["accuracy-1.0x"] == lines[-1]["accuracy"]["1.0x"]
    assert list(told["delivered"]) == lines[-1]["delivered"]


def test_without_a_quorum_flower_keeps_its_model():
    grid = federation(4)
    strategy = SlimFLStrategy(experiment("flower"), grid)
    arrays = strategy.initial_arrays()
    messages = list(strategy.configure_train(1, arrays, ConfigRecord(), grid))
    assert len(messages) == 3
    assert strategy.aggregate_train(1, []) == (None, None)
    assert strategy.lines == []
    replies = grid.send_and_receive(strategy.configure_train(1, arrays, ConfigRecord(), grid))
    merged, _ = strategy.aggregate_train(1, [*replies, *replies])  # each of them twice
    assert merged is not None
    assert strategy.lines[0]["round"] == 1


@dataclass(frozen=True)
class Fainter:
    """A channel with a memory: every round has half the gain of the one before."""

    inner: OutageChannel
    needs_payload: bool = False

    def start(self, population, seed):
        return {"factor": np.ones(1)}

    def links(self, state, round, devices, seed):
        links, _ = self.inner.links({}, round, devices, seed)
        after = {"factor": state["factor"] / 2}
        return replace(links, gains=links.gains * state["factor"]), after

    def receive(self, links, signals, payloads):
        return self.inner.receive(links, signals, payloads)

    def probabilities(self, devices, signal):
        return None


def test_the_channel_s_memory_goes_on_through_a_round_without_a_quorum():
    grid, described = federation(4), experiment("flower")
    channel = Fainter(outage_channel(described.radio))
    strategy = SlimFLStrategy(described, grid, channel=channel)
    arrays = strategy.initial_arrays()
    list(strategy.configure_train(1, arrays, ConfigRecord(), grid))
    assert strategy.aggregate_train(1, []) == (None, None)
    replies = grid.send_and_receive(strategy.configure_train(2, arrays, ConfigRecord(), grid))
    strategy.aggregate_train(2, replies)
    here = Simulation(experiment("torch"), channel=channel)
    here.step()
    assert strategy.lines[0]["gains"] == here.step()["gains"]


@pytest.mark.parametrize("part", ["configure", "aggregate"])
def test_devices_are_not_asked_to_evaluate(part):
    strategy = SlimFLStrategy(experiment("flower"), federation(4))
    arrays = strategy.initial_arrays()
    if part == "configure":
        assert strategy.configure_evaluate(1, arrays, ConfigRecord(), federation(4)) == []
    else:
        assert strategy.aggregate_evaluate(1, []) is None
