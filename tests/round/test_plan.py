"""A round in two halves: planning changes nothing, and a device may sit a round out."""

from dataclasses import asdict, dataclass, replace

import numpy as np
import pytest

from slimfl.data import synthetic
from slimfl.experiment import build
from slimfl.methods import Merge, SlimFL, Work
from slimfl.radio import Links, outage_channel
from slimfl.round import RunFolder, Simulation, run

DATASET = synthetic(train=300, test=100, size=6)


def experiment(engine="native", **changes):
    tree = {"rounds": 4, "engine": engine, "training": {"steps": 2, "batch_size": 8}}
    return build({**tree, **changes})


@dataclass(frozen=True)
class Drawing(SlimFL):
    """Draws the widths of a device anew in every round, and keeps a count."""

    name: str = "drawing"

    def assign(self, device, round, random):
        widths = (0, 1) if random().random() < 0.5 else (0,)
        return Work(widths, tuple((s,) for s in widths))

    def start(self, model):
        return {"rounds": np.zeros(1, np.int64)}

    def merge(self, mean, state):
        return Merge(mean, {"rounds": state["rounds"] + 1})


@dataclass(frozen=True)
class Counting:
    """The paper's channel with a memory: how often it was asked for links."""

    inner: object
    needs_payload: bool = False

    def start(self, population, seed):
        return {"asked": np.zeros(1, np.int64)}

    def links(self, state, round, devices, seed):
        links, _ = self.inner.links({}, round, devices, seed)
        return links, {"asked": state["asked"] + 1}

    def receive(self, links, signals, payloads):
        return self.inner.receive(links, signals, payloads)

    def probabilities(self, devices, signal):
        return self.inner.probabilities(devices, signal)


def counting():
    return Counting(outage_channel(experiment().radio))


def described(plan):
    """A plan as plain values."""
    links = asdict(plan.links)
    return {
        "round": plan.round,
        "devices": list(plan.devices),  # every column and name of every row
        "assignments": plan.work,
        "signals": plan.signals,
        "links": {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in links.items()},
        "state": {name: value.tolist() for name, value in plan.channel_state.items()},
        "absent": plan.absent,
        "tasks": plan.tasks,
    }


def everything(sim):
    saved = sim.state.checkpoint()
    arrays = {name: value.tobytes() for name, value in saved.tensors.items()}
    return saved.round, saved.state, arrays


def test_planning_twice_gives_the_same_plan_and_changes_nothing():
    section = {"participation": 0.7, "dropout": 0.2}
    made = [
        Simulation(
            experiment(federation=section),
            dataset=DATASET,
            method=Drawing((0.5, 1.0)),
            channel=counting(),
        )
        for _ in range(2)
    ]
    plans = []
    for _ in range(3):
        for sim, times in zip(made, (1, 4), strict=True):
            before = everything(sim)
            plans = [described(sim.plan()) for _ in range(times)]
            assert all(plan == plans[0] for plan in plans)
            assert everything(sim) == before
        lines = [sim.step() for sim in made]
        assert {**lines[0], "seconds": 0} == {**lines[1], "seconds": 0}
    assert everything(made[0]) == everything(made[1])
    assert made[0].state.channel.arrays["asked"] == made[0].state.method.arrays["rounds"] == 3
    widths = {assignment.widths for assignment in plans[0]["assignments"]}
    assert widths == {(0,), (0, 1)}, "else nothing was drawn"


def test_a_plan_can_be_collected_later_than_it_was_made():
    here, there = (Simulation(experiment(), dataset=DATASET) for _ in range(2))
    plan = there.plan()
    outcomes = list(there.engine.train(plan.round, there.global_model, plan.tasks))
    there.plan()
    line = there.collect(plan, iter(outcomes))
    assert {**line, "seconds": 0} == {**here.step(), "seconds": 0}
    np.testing.assert_array_equal(here.global_model, there.global_model)


@dataclass(frozen=True)
class Resting(SlimFL):
    """Odd devices sit out odd rounds; everybody sits out round 3."""

    name: str = "resting"

    def assign(self, device, round, random):
        if round == 3 or (round % 2 and device.id % 2):
            return None
        return super().assign(device, round, random)


@pytest.mark.parametrize("engine", ["native", "torch"])
def test_a_device_that_sits_out_neither_trains_nor_sends_nor_drops_out(engine):
    sim = Simulation(experiment(engine), dataset=DATASET, method=Resting((0.5, 1.0)))
    usual = Simulation(experiment(engine), dataset=DATASET)
    for number, active in enumerate(([0, 2, 4, 6, 8], list(range(10)), [], list(range(10))), 1):
        before = sim.global_model.copy()
        line, other = sim.step(), usual.step()
        assert line["round"] == number
        assert line["devices"] == active
        assert line["dropped_out"] == []
        # the others meet the channel that they meet anyway
        assert line["gains"] == [other["gains"][k] for k in active]
        assert line["decoded"] == [other["decoded"][k] for k in active]
        if number == 1:
            steps = [k for k in sim.engine.states.export() if k.endswith("/step")]
            assert sorted(steps) == [f"{k}/step" for k in active]
        if not active:
            np.testing.assert_array_equal(sim.global_model, before)
            assert (line["energy_j"], line["images"], line["learning_rate"]) == (0, 0, None)
            assert line["accuracy"]


def test_the_mean_is_over_those_that_take_part():
    sim = Simulation(experiment(), dataset=DATASET, method=Resting((0.5, 1.0)))
    plan = sim.plan()
    outcomes = list(sim.engine.train(1, sim.global_model, plan.tasks))
    line = sim.collect(plan, iter(outcomes))
    for segment in (0, 1):
        arrived = [
            one.parameters.astype(float)
            for one, count in zip(outcomes, line["decoded"], strict=True)
            if count > segment
        ]
        where = sim.setting.segments.positions[segment]
        np.testing.assert_allclose(
            sim.global_model[where], np.mean(arrived, axis=0)[where], rtol=1e-6
        )


@dataclass(frozen=True)
class Unknown(Counting):
    """A channel that decodes without ever knowing a gain."""

    def links(self, state, round, devices, seed):
        links, state = super().links(state, round, devices, seed)
        return replace(links, gains=np.full(len(links), np.nan)), state

    def receive(self, links: Links, signals, payloads):
        return self.inner.receive(replace(links, gains=np.ones(len(links))), signals, payloads)


def test_gains_that_nobody_knows_are_recorded_as_such(tmp_path):
    channel = Unknown(outage_channel(experiment().radio))
    sim = Simulation(experiment(), dataset=DATASET, channel=channel)
    folder = RunFolder.create(tmp_path / "run", sim.experiment, sim.setting.provenance())
    run(sim, folder)
    assert [line["gains"] for line in folder.metrics()] == [None] * 4
