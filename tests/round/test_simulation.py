"""The round loop: what a round does with devices, channel and updates."""

import logging

import numpy as np
import pytest

import slimfl
from slimfl.data import synthetic
from slimfl.errors import RequestError, RunError
from slimfl.experiment import build
from slimfl.radio import Links, Receptions, signal
from slimfl.round import Callback, Simulation, finished, run
from tests import asking

DATASET = synthetic(train=300, test=100, size=6)
SMALL = {"rounds": 3, "training": {"steps": 2, "batch_size": 8}}


def experiment(**changes):
    tree = {key: dict(value) if isinstance(value, dict) else value for key, value in SMALL.items()}
    for key, value in changes.items():
        section, _, name = key.partition("__")
        if name:
            tree.setdefault(section, {})[name] = value
        else:
            tree[section] = value
    return build(tree)


def simulate(**changes):
    return run(Simulation(experiment(**changes), dataset=DATASET))


def without_seconds(lines):
    return [{k: v for k, v in line.items() if k != "seconds"} for line in lines]


def test_two_runs_with_one_seed_are_the_same_and_another_seed_differs():
    assert without_seconds(simulate()) == without_seconds(simulate())
    assert without_seconds(simulate()) != without_seconds(simulate(seed=1))


def test_methods_under_one_seed_see_the_same_channel_and_differ_in_what_arrives():
    runs = {m: simulate(method=m, rounds=20) for m in ("slimfl", "vanilla-0.5x", "vanilla-1.0x")}
    gains = [[line["gains"] for line in lines] for lines in runs.values()]
    assert gains[0] == gains[1] == gains[2]
    section = experiment().radio
    thresholds = {
        "vanilla-0.5x": signal(section, ((0,),), 2, (1530.0, 3056.0)).coding.thresholds(0.0501187),
        "vanilla-1.0x": signal(section, ((0, 1),), 2).coding.thresholds(0.0501187),
    }
    for name, count in (("vanilla-0.5x", 1), ("vanilla-1.0x", 2)):
        for line in runs[name]:
            expected = [count if g >= thresholds[name][0] else 0 for g in line["gains"]]
            assert line["decoded"] == expected


def test_what_is_delivered_follows_from_what_was_decoded():
    for line in simulate(rounds=10):
        assert line["delivered"] == [sum(d > s for d in line["decoded"]) for s in (0, 1)]


def test_vanilla_leaves_the_parameters_of_wider_widths_alone():
    sim = Simulation(experiment(method="vanilla-0.5x"), dataset=DATASET)
    before = sim.global_model.copy()
    run(sim)
    outside = ~sim.setting.segments.mask(0.5)
    np.testing.assert_array_equal(sim.global_model[outside], before[outside])
    assert (sim.global_model[~outside] != before[~outside]).any()


def test_the_global_model_is_the_mean_of_what_devices_delivered():
    sim = Simulation(experiment(), dataset=DATASET)
    updates = {}
    train = sim.engine.train

    def spy(*arguments):
        for update in train(*arguments):
            updates[update.device] = update.parameters
            yield update

    sim.engine.train = spy
    line = sim.step()
    for s in (0, 1):
        delivered = [d for d, n in zip(line["devices"], line["decoded"], strict=True) if n > s]
        expected = np.mean([updates[d].astype(float) for d in delivered], axis=0)
        where = sim.setting.segments.positions[s]
        np.testing.assert_allclose(sim.global_model[where], expected[where], rtol=1e-6)


def test_averages_can_be_weighted_by_samples():
    sim = Simulation(experiment(federation__average="samples"), dataset=DATASET)
    updates = []
    train = sim.engine.train

    def spy(*arguments):
        for update in train(*arguments):
            updates.append(update)
            yield update

    sim.engine.train = spy
    line = sim.step()
    arrived = [u for u, n in zip(updates, line["decoded"], strict=True) if n > 0]
    weights = sim.setting.partition.sizes[[u.device for u in arrived]]
    expected = np.average([u.parameters for u in arrived], axis=0, weights=weights)
    where = sim.setting.segments.positions[0]
    np.testing.assert_allclose(sim.global_model[where], expected[where], rtol=1e-5)


@pytest.mark.parametrize("damage", ["nan", "infinity", "shape"])
def test_a_bad_update_is_refused_counted_and_named(damage, caplog):
    sim = Simulation(experiment(radio__noise_dbm=-200.0), dataset=DATASET)
    train = sim.engine.train

    def sabotage(*arguments):
        for update in train(*arguments):
            if update.device == 4:
                if damage == "shape":
                    object.__setattr__(update, "parameters", update.parameters[:-1])
                else:
                    update.parameters[10] = np.nan if damage == "nan" else np.inf
            yield update

    sim.engine.train = sabotage
    with caplog.at_level(logging.WARNING):
        line = sim.step()
    assert line["refused"] == [4]
    assert line["delivered"] == [9, 9]
    assert np.isfinite(sim.global_model).all()
    assert "device 4" in caplog.text


def test_an_error_on_a_device_names_round_device_and_stage():
    sim = Simulation(experiment(), dataset=DATASET)
    train = sim.engine.train

    def fail(*arguments):
        for update in train(*arguments):
            if update.device == 3:
                raise ValueError("out of cheese")
            yield update

    sim.engine.train = fail
    with pytest.raises(RunError, match="round 1, device 3, training: out of cheese"):
        sim.step()


def test_devices_that_drop_out_neither_train_nor_send():
    lines = simulate(federation__dropout=0.5, federation__participation=0.6, rounds=6)
    assert any(line["dropped_out"] for line in lines)
    for line in lines:
        assert len(line["devices"]) + len(line["dropped_out"]) == 6
        assert len(line["decoded"]) == len(line["gains"]) == len(line["devices"])


def test_a_round_in_which_nobody_answers_changes_nothing():
    sim = Simulation(experiment(federation__dropout=0.999999), dataset=DATASET)
    before = sim.global_model.copy()
    line = sim.step()
    assert line["devices"] == []
    assert line["energy_j"] == 0
    np.testing.assert_array_equal(sim.global_model, before)


def test_evaluation_every_n_rounds_and_in_the_last():
    lines = simulate(rounds=5, federation__evaluate_every=2)
    assert [bool(line["accuracy"]) for line in lines] == [False, True, False, True, True]


def test_early_stop_ends_at_the_round_of_convergence():
    easy = {
        "federation__stop_on_convergence": True,
        "federation__convergence_window": 3,
        "federation__convergence_accuracy": 0.0,
        "federation__convergence_deviation": 1.0,
    }
    lines = simulate(rounds=10, **easy)
    assert len(lines) == 3
    assert finished(experiment(rounds=10, **easy), lines)


def test_a_callback_that_raises_does_not_end_the_run(caplog):
    class Broken(Callback):
        def on_round(self, record, model):
            raise RuntimeError("no")

    seen = []

    class Watcher(Callback):
        def on_round(self, record, model):
            seen.append(record.round)

    run(Simulation(experiment(), dataset=DATASET), callbacks=[Broken(), Watcher()])
    assert seen == [1, 2, 3]
    assert caplog.text.count("callback Broken failed") == 1


def test_an_infeasible_split_is_told_before_anything_happens():
    with pytest.raises(RequestError, match="segment 1"):
        Simulation(experiment(radio__split=(0.5, 0.5)), dataset=DATASET)


@pytest.mark.parametrize("name", ["no.such:step", "math:sqrt"])
def test_a_step_that_cannot_be_had_is_told_before_anything_happens(name, tmp_path):
    values = {"rounds": 1, "data__dataset": "synthetic", "training__algorithm": name}
    with pytest.raises(RequestError, match=f"local step '{name}'"):
        asking.run(out=tmp_path / "run", **values)
    assert not (tmp_path / "run").exists()


def test_own_network_method_and_channel_need_no_registration():
    from torch import nn

    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = slimfl.nn.SlimLinear(36, 8, slim_in=False)
            self.two = slimfl.nn.SlimLinear(8, 10, slim_out=False)

        def forward(self, x):
            return self.two(self.one(x.flatten(1)).relu())

    class Perfect:
        needs_payload = False

        def start(self, population, seed):
            return {}

        def links(self, state, round, devices, seed):
            count = len(devices)
            ones = np.ones(count)
            return Links(seed, round, devices.ids, ones, ones, devices.power_dbm), state

        def receive(self, links, signals, payloads):
            decoded = np.array([len(sent.messages) for sent in signals])
            zeros = np.zeros(len(links))
            return Receptions(decoded, np.ones_like(decoded), zeros, zeros)

        def probabilities(self, devices, signal):
            return np.ones((len(devices), len(signal.messages)))

    result = asking.run(
        dataset=DATASET, network=Head(), channel=Perfect(), rounds=2, training__steps=2
    )
    assert [line["delivered"] for line in result.lines] == [[10, 10]] * 2
    assert result.experiment.radio.channel == "poor"  # on which some would have been lost
