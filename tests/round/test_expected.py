"""What is expected to arrive is what arrives, over many simulated rounds, or nothing."""

import numpy as np
import pytest

from slimfl.engines import Update
from slimfl.experiment import build
from slimfl.results.rules import expected_of
from slimfl.round import Simulation
from slimfl.round.expected import prospect

ROUNDS = 300
#: Tolerance in standard errors; a normal variable exceeds it once in a million times.
ERRORS = 5.0

HALF_WEAK = [
    {"name": "weak", "share": 0.5, "max_width": 0.5, "distance_m": 120.0},
    {"name": "strong", "share": 0.5, "distance_m": 80.0, "availability": 0.8},
]
UNEQUAL_SPEED = [
    {"name": "fast", "share": 0.5, "macs_per_s": 1e10},
    {"name": "slow", "share": 0.5, "macs_per_s": 2e9},
]


def tried(changes):
    tree = {
        "rounds": 10**6,
        "threads": 1,
        "data": {"dataset": "synthetic", "train_samples": 100, "test_samples": 10},
        "training": {"steps": 1, "batch_size": 1},
        "federation": {"devices": 20, "evaluate_every": 10**6},
        "model": {"name": "mlp", "options": {"features": 144, "hidden": [4]}},
    }
    tree["data"]["min_samples"] = 1
    for key, value in changes.items():
        tree[key] = {**tree.get(key, {}), **value} if isinstance(value, dict) else value
    return build(tree)


def expected(simulation):
    return simulation.setting.provenance().get("expected_shares")


def measured(simulation, rounds=ROUNDS):
    """(delivered share of every segment, how often a device was asked), counted from records."""
    simulation.engine.train = _untrained  # the channel does not care
    delivered, asked = np.zeros(2), 0
    for _ in range(rounds):
        line = simulation.step()
        delivered += line.delivered
        asked += len(line.devices) + (
            len(line.dropped_out) if line.silent_tasks is None else sum(line.silent_tasks)
        )
    return delivered / asked, asked


def _untrained(number, model, tasks):
    for task in tasks:
        seen = np.isin(np.arange(2), task.work.widths).astype(np.int64)
        yield Update(task.device, model, 5, np.zeros(2), seen)


AGREE = {
    "plain": {},
    "dropout, some asked": {"federation": {"dropout": 0.3, "participation": 0.5}},
    "unequal devices": {"population": {"classes": HALF_WEAK}},
    "too weak for the method": {"method": "vanilla-1.0x", "population": {"classes": HALF_WEAK}},
    "too weak, and silent": {
        "method": "vanilla-1.0x",
        "population": {"classes": HALF_WEAK},
        "federation": {"dropout": 0.4},
        "radio": {"downlink": "lossy", "downlink_power_dbm": 15.0},
    },
    "fixed width": {"population": {"width": "fixed", "fixed_width": 0.5}},
    "random width": {"population": {"width": "random"}},
    "random width of unequal devices": {"population": {"width": "random", "classes": HALF_WEAK}},
    "random width, one method for the full one": {
        "method": "exclusive",
        "population": {"width": "random"},
        "federation": {"dropout": 0.2},
    },
    "random width, split per device": {
        "population": {"width": "random"},
        "radio": {"split": "per-device"},
    },
    "pairs": {"radio": {"users_per_slot": 2}},
    "pairs of some": {"radio": {"users_per_slot": 2}, "federation": {"participation": 0.2}},
    "asynchronous": {
        "time": {"mode": "asynchronous", "concurrency": 10},
        "federation": {"dropout": 0.3},
        "population": {"classes": UNEQUAL_SPEED},
    },
    "split per device, always in sight": {
        "radio": {
            "split": "per-device",
            "path_loss": "umi",
            "line_of_sight": "always",
            "shadowing_db": 0.0,
            "noise_dbm": -90.0,
        }
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("changes", AGREE.values(), ids=AGREE)
def test_what_is_expected_arrives(changes):
    simulation = Simulation(tried(changes))
    known = np.array(expected(simulation))
    found, asked = measured(simulation)
    # partners share their luck, so pairs count as one draw at worst
    independent = asked / (2 if simulation.experiment.radio.users_per_slot == 2 else 1)
    error = ERRORS * np.sqrt(known * (1 - known) / independent)
    assert (np.abs(found - known) <= error).all(), (found, known, error)


NO_FORMULA = {
    "deadline": {"time": {"mode": "deadline", "deadline_s": 0.02}},
    "first": {"time": {"mode": "first", "first": 5}},
    "over-commit": {"time": {"mode": "over-commit"}, "federation": {"participation": 0.5}},
    "an odd number asked": {
        "radio": {"users_per_slot": 2},
        "federation": {"participation": 0.15},
    },
    "pairs, dropout": {"radio": {"users_per_slot": 2}, "federation": {"dropout": 0.4}},
    "pairs, lossy downlink": {
        "radio": {"users_per_slot": 2, "downlink": "lossy", "downlink_power_dbm": 15.0}
    },
    "line of sight drawn": {
        "radio": {
            "split": "per-device",
            "path_loss": "umi",
            "shadowing_db": 0.0,
            "noise_dbm": -90.0,
        }
    },
}


@pytest.mark.parametrize("changes", NO_FORMULA.values(), ids=NO_FORMULA)
def test_nothing_is_expected_without_a_formula(changes):
    described = tried(changes)
    assert expected(Simulation(described)) is None
    assert prospect(described).delivered is None
    # nor of a run whose version recorded something all the same
    assert expected_of(described, {"expected_shares": [0.8, 0.6]}) is None


BY_DEVICES = {
    "pairs, offline": {
        "radio": {"users_per_slot": 2},
        "population": {"classes": [{"name": "all", "share": 1.0, "availability": 0.5}]},
    },
    "pairs, too weak": {
        "method": "vanilla-1.0x",
        "radio": {"users_per_slot": 2},
        "population": {"classes": [{**each, "distance_m": 100.0} for each in HALF_WEAK]},
    },
    "pairs, random width": {"radio": {"users_per_slot": 2}, "population": {"width": "random"}},
    "batteries": {"population": {"preset": "sensors"}},
    "growing width": {"population": {"width": "growing"}},
    "asynchronous, unequal devices": {
        "time": {"mode": "asynchronous"},
        "population": {
            "classes": [
                {**place, **speed, "name": speed["name"]}
                for place, speed in zip(HALF_WEAK, UNEQUAL_SPEED, strict=True)
            ]
        },
    },
}


@pytest.mark.parametrize("changes", BY_DEVICES.values(), ids=BY_DEVICES)
def test_nothing_is_expected_of_such_devices(changes):
    assert expected(Simulation(tried(changes))) is None


def test_the_prospect_follows_the_width_policy():
    """By hand: half of the rounds at each width, or all of them at half width."""
    paper = prospect(tried({})).delivered[0]
    narrow = prospect(tried({"population": {"width": "fixed", "fixed_width": 0.5}})).delivered[0]
    assert narrow[0] > paper[0]  # all the power for segment 1
    assert narrow[1] == 0
    random = prospect(tried({"population": {"width": "random"}})).delivered[0]
    np.testing.assert_allclose(random, (narrow + paper) / 2, rtol=1e-12)
    grown = {"rounds": 40, "population": {"width": "growing", "grow_every": 10}}
    growing = prospect(tried(grown)).delivered[0]
    np.testing.assert_allclose(growing, (narrow + 3 * paper) / 4, rtol=1e-12)
