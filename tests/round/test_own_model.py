"""`radio.downlink_missed = "own-model"`: who misses the global model trains on from its own."""

import numpy as np
import pytest

from slimfl.errors import RequestError
from slimfl.experiment import build
from slimfl.radio import heard
from slimfl.round import Simulation

LOSSY = {"downlink": "lossy", "downlink_power_dbm": 14.0, "downlink_missed": "own-model"}


def tried(radio=LOSSY, *, devices=6, training=None, **top):
    return build(
        {
            "rounds": 6,
            "data": {"dataset": "synthetic", "train_samples": 200, "test_samples": 50},
            "training": {"steps": 1, "batch_size": 4, **(training or {})},
            "federation": {"devices": devices, "participation": 0.7 if devices > 1 else 1.0},
            "radio": radio,
            **top,
        }
    )


TRAINED = {
    "adam": {},
    "fresh": {"training": {"optimiser_state": "fresh"}},
    "plain sgd": {"training": {"optimiser": "sgd", "momentum": 0.0}},
    "momentum": {"training": {"optimiser": "sgd"}},
    "other channels": {"method": "fedrolex"},
    "vanilla": {"method": "vanilla-0.5x"},
}


@pytest.mark.parametrize("engine", ["torch", "native"])
@pytest.mark.parametrize("changed", TRAINED.values(), ids=TRAINED)
def test_every_device_starts_from_the_model_that_it_has(changed, engine):
    """Beside the run, a plain dictionary of what each device had last."""
    simulation = Simulation(tried(engine=engine, **changed))
    experiment, initial = simulation.experiment, simulation.global_model.copy()
    own, starts, missed = {}, {}, 0
    train = simulation.engine.train

    def watched(round, start, tasks):
        for task in tasks:
            starts[task.device] = start.copy()
        return train(round, start, tasks)

    simulation.engine.train = watched
    for number in range(1, 6):
        model, state = simulation.global_model.copy(), simulation.state.channel.arrays
        plan = simulation.plan()
        ids = plan.devices.ids
        hears = heard(
            experiment.radio, simulation.setting.channel, state, number,
            simulation.setting.population.take(ids), experiment.seed,
        )  # fmt: skip
        outcomes = list(simulation.outcomes(plan))
        for device, hears_it, outcome in zip(ids.tolist(), hears, outcomes, strict=True):
            assert outcome.device == device
            expected = model if hears_it else own.get(device, initial)
            np.testing.assert_array_equal(starts[device], expected)
            own[device] = outcome.parameters.copy()
            missed += not hears_it
        simulation.collect(plan, iter(outcomes))
    assert 3 <= missed <= 17
    for device, model in own.items():
        np.testing.assert_array_equal(simulation.engine.states.model(device), model)


def test_a_deaf_device_alone_runs_as_if_it_heard():
    """All that the global model consists of is what the device sent, which it still has."""
    clear = {"noise_dbm": -200.0}
    deaf = {**clear, **LOSSY, "downlink_power_dbm": -300.0}
    alone, usual = Simulation(tried(deaf, devices=1)), Simulation(tried(clear, devices=1))
    for _ in range(4):
        assert alone.step().devices == usual.step().devices == [0]
    assert alone.global_model.tobytes() == usual.global_model.tobytes()


def test_nobody_is_left_out():
    trains_on, sits_out = (
        Simulation(tried()),
        Simulation(tried({**LOSSY, "downlink_missed": "sits-out"})),
    )
    for _ in range(3):
        on, out = trains_on.step(), sits_out.step()
        assert on.devices == sorted([*out.devices, *out.dropped_out])
        assert on.dropped_out == []


def test_what_is_expected_counts_everybody():
    shares = Simulation(tried()).setting.provenance()["expected_shares"]
    assert shares == Simulation(tried({})).setting.provenance()["expected_shares"]


def test_where_it_cannot_work_it_is_refused():
    with pytest.raises(RequestError, match=r'needs radio\.downlink = "lossy"'):
        tried({"downlink_missed": "own-model"})
    with pytest.raises(RequestError, match=r'needs engine = "auto" or "torch"'):
        tried(engine="flower")
    with pytest.raises(RequestError, match=r"time\.mode"):
        tried(time={"mode": "asynchronous"})
