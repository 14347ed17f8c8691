"""The parts of `docs/howto/mylab` compute what they say."""

from dataclasses import dataclass

import numpy as np
import pytest

from slimfl.data import synthetic
from slimfl.errors import RequestError
from slimfl.experiment.naming import trusting
from slimfl.radio import outage_channel
from slimfl.round import Simulation
from tests import asking
from tests.killed_runs import HOWTO

DATASET = synthetic(train=300, test=100, size=6)


@pytest.fixture(autouse=True)
def _mylab(monkeypatch):
    monkeypatch.syspath_prepend(str(HOWTO))
    with trusting(["mylab"]):
        yield


def simulation(**values):
    [experiment] = asking.load(
        None, **{"rounds": 6, "training__steps": 2, "engine": "native", **values}
    )
    return Simulation(experiment, dataset=DATASET)


MOMENTUM = {"method": "mylab.momentum:CappedMomentum"}
DRIFTING = {"radio__model": "mylab.drifting:DriftingFading"}


def test_momentum_is_a_decaying_sum_of_changes_and_weak_devices_send_the_narrow_part():
    sim = simulation(**MOMENTUM, method_options={"weak": 4, "momentum": 0.5})
    velocity = np.zeros(len(sim.global_model))
    for _ in range(3):
        before, plan = sim.global_model.astype(float), sim.plan()
        assert [a.widths for a in plan.work] == [(0,)] * 4 + [(0, 1)] * 6
        outcomes = list(sim.outcomes(plan))
        line = sim.collect(plan, iter(outcomes))
        assert max(line.decoded[:4]) <= 1
        for segment in (0, 1):
            arrived = [
                one.parameters.astype(float)
                for one, count in zip(outcomes, line.decoded, strict=True)
                if count > segment
            ]
            assert arrived
            where = sim.setting.segments.positions[segment]
            change = np.mean(arrived, axis=0)[where] - before[where]
            velocity[where] = 0.5 * velocity[where] + change
            np.testing.assert_allclose(
                sim.global_model[where], (before[where] + velocity[where]), atol=1e-5
            )


def test_without_its_memory_a_resumed_run_would_be_another():
    """So that the comparison of bits above can fail."""
    for kept in ("method", "channel"):
        sims = [simulation(**MOMENTUM, **DRIFTING) for _ in range(2)]
        for sim in sims:
            for _ in range(3):
                sim.step()
        fresh = simulation(**MOMENTUM, **DRIFTING)
        setattr(sims[0].state, kept, getattr(fresh.state, kept))
        forgot, remembered = (sim.step() for sim in sims)
        assert forgot.loss != remembered.loss


def test_the_fading_drifts_with_the_correlation_it_was_given():
    """Over many devices: neighbouring rounds correlate with a, and the mean gain stays 1."""
    sim = simulation(**DRIFTING, federation__devices=10, radio__options={"correlation": 0.8})
    channel, devices = sim.setting.channel, 50_000
    population = replace_devices(sim.setting.population, devices)
    state = channel.start(population, 3)
    before = state["fading"]
    for number in (1, 2, 3):
        links, state = channel.links(state, number, population, 3)
        correlation = np.corrcoef(before.ravel(), state["fading"].ravel())[0, 1]
        assert correlation == pytest.approx(0.8, abs=0.01)
        assert links.gains.mean() == pytest.approx(1.0, abs=0.03)
        before = state["fading"]
    assert (state["distance_m"] >= 50).all()
    assert (state["distance_m"] <= 150).all()
    ratio = links.noise_to_power
    order = np.argsort(state["distance_m"])
    assert (np.diff(ratio[order]) >= 0).all(), "who stands farther has the worse link"


def replace_devices(population, count):
    return type(population).alike(
        np.ones(count, np.int64),
        max_width=int(population.max_width[0]),
        power_dbm=float(population.power_dbm[0]),
        distance_m=float(population.distance_m[0]),
    )


@dataclass(frozen=True)
class Watching:
    """Notes what another channel was given and what it made of it."""

    inner: object
    seen: list

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def receive(self, links, signals, payloads):
        receptions = self.inner.receive(links, signals, payloads)
        self.seen.append((payloads, receptions))
        return receptions


@pytest.mark.parametrize("engine", ["native", "torch"])
def test_the_merge_sees_the_bits_that_the_channel_flipped(engine):
    name = {"radio__model": "mylab.bit_errors:BitErrors"}
    sim = simulation(engine=engine, **name, radio__options={"flip_probability": 0.05})
    watching = Watching(sim.setting.channel, [])
    sim.setting.channel = sim.setting.radio.channel = watching
    plan = sim.plan()
    outcomes = list(sim.outcomes(plan))
    sent = [one.parameters.copy() for one in outcomes]
    line = sim.collect(plan, iter(outcomes))
    assert line.decoded == [2] * 10
    [(payloads, receptions)] = watching.seen
    damaged = 0
    for segment in (0, 1):
        where = sim.setting.segments.positions[segment]
        for device, payload in enumerate(payloads):
            np.testing.assert_array_equal(payload[segment].view(np.float32), sent[device][where])
        received = [payload[segment].view(np.float32) for payload in receptions.payloads]
        damaged += sum(int((r != sent[k][where]).sum()) for k, r in enumerate(received))
        expected = np.mean(np.array(received, np.float64), axis=0).astype(np.float32)
        np.testing.assert_array_equal(sim.global_model[where], expected)
    # a float differs unless none of its 22 bits was flipped
    share = damaged / (10 * len(sim.global_model))
    assert share == pytest.approx(1 - 0.95**22, abs=0.01)
    for one, before in zip(outcomes, sent, strict=True):
        np.testing.assert_array_equal(one.parameters, before, err_msg="a device keeps its own copy")


def test_without_flips_the_payload_changes_nothing():
    name = {"radio__model": "mylab.bit_errors:BitErrors"}
    clean = simulation(**name, radio__options={"flip_probability": 0.0})
    perfect = simulation(radio__noise_dbm=-200.0)
    for _ in range(2):
        assert clean.step().delivered == perfect.step().delivered == [10, 10]
    np.testing.assert_array_equal(clean.global_model, perfect.global_model)


def test_bits_of_a_nan_are_refused_like_any_nan():
    sim = simulation(radio__model="mylab.bit_errors:BitErrors")
    plain = sim.setting.channel

    @dataclass(frozen=True)
    class Breaking:
        needs_payload: bool = True

        def receive(self, links, signals, payloads):
            receptions = plain.receive(links, signals, payloads)
            receptions.payloads[3][0].view(np.float32)[:] = np.nan
            return receptions

        def __getattr__(self, name):
            return getattr(plain, name)

    sim.setting.channel = sim.setting.radio.channel = Breaking()
    line = sim.step()
    assert line.refused == [3]
    assert line.delivered == [9, 9]
    assert np.isfinite(sim.global_model).all()


def test_options_that_a_part_does_not_take_are_named():
    for named, key, options in (
        (MOMENTUM, "method_options", {"method_options": {"speed": 1}}),
        (DRIFTING, "radio.options", {"radio__options": {"speed": 1}}),
    ):
        with pytest.raises(RequestError, match=f"does not take {key}: .*speed"):
            simulation(**named, **options)


def test_the_paper_s_channel_is_the_drifting_one_without_distance_and_memory():
    """With a = 0 and one distance only the draws differ: the shares are those of equation (5)."""
    options = {"correlation": 0.0, "nearest_m": 100.0, "farthest_m": 100.0}
    sim = simulation(**DRIFTING, radio__options=options)
    population = replace_devices(sim.setting.population, 20_000)
    state = sim.setting.channel.start(population, 1)
    links, _ = sim.setting.channel.links(state, 1, population, 1)
    [signal, *_] = sim.plan().signals
    decoded = sim.setting.channel.receive(links, [signal] * len(population), None).decoded
    expected = outage_channel(sim.experiment.radio).probabilities(population.take([0]), signal)[0]
    found = [(decoded > message).mean() for message in (0, 1)]
    assert found == pytest.approx(expected.tolist(), abs=4 * 0.5 / np.sqrt(len(population)))
