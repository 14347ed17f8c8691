"""The torch engine: the same numbers for any number of threads, and torch left alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import slimfl
from slimfl.data import synthetic
from slimfl.errors import RequestError, RunError
from slimfl.methods.slimfl import SlimFL
from tests import asking

DATASET = synthetic(train=400, test=450, size=8)
SETTINGS = {"dataset": DATASET, "rounds": 2, "training__steps": 3, "engine": "torch"}


def test_numbers_do_not_depend_on_the_number_of_threads():
    one, three = (asking.run(threads=n, **SETTINGS) for n in (1, 3))
    np.testing.assert_array_equal(one.parameters, three.parameters)
    assert [line["accuracy"] for line in one.lines] == [line["accuracy"] for line in three.lines]


def test_torch_keeps_its_own_thread_count():
    before = torch.get_num_threads()
    asking.run(threads=2, **SETTINGS)
    assert torch.get_num_threads() == before


def test_evaluation_equals_one_large_batch():
    run = asking.run(**SETTINGS)
    mean, deviation = DATASET.normalisation("standard")
    images = torch.from_numpy(DATASET.test.images).permute(0, 3, 1, 2) / 255
    images = (images - mean[0]) / deviation[0]
    labels = torch.from_numpy(DATASET.test.labels)
    for width in (0.5, 1.0):
        with slimfl.nn.at_width(width), torch.no_grad():
            logits = run.network(images)
        right = (logits.argmax(1) == labels).float().mean().item()
        assert run.lines[-1]["accuracy"][f"{width}x"] == pytest.approx(right, abs=0.003)
        loss = torch.nn.functional.cross_entropy(logits, labels).item()
        assert run.lines[-1]["loss"][f"{width}x"] == pytest.approx(loss, rel=1e-4)


def test_a_failing_device_ends_the_round_with_its_name():
    class Fragile(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.head = slimfl.nn.SlimLinear(64, 10, slim_in=False, slim_out=False)

        def forward(self, x):
            if self.training and len(x) == 3:
                raise ValueError("three is too few")
            return self.head(x.flatten(1))

    with pytest.raises(RunError, match=r"round 1, device \d+, training: three is too few"):
        asking.run(
            dataset=DATASET,
            network=Fragile(),
            rounds=1,
            data__partition="iid",
            federation__devices=10,
            training__epochs=1,
            training__batch_size=37,
            radio__rates="equal",  # its second segment is empty
        )


@pytest.mark.parametrize("state", ["kept", "fresh"])
def test_optimiser_state_is_kept_or_fresh(state):
    sim = slimfl.round.Simulation(
        slimfl.experiment.build({"rounds": 2, "training": {"steps": 2, "optimiser_state": state}}),
        dataset=DATASET,
    )
    sim.step()
    sim.step()
    steps = {k: float(v) for k, v in sim.engine.states.export().items() if k.endswith("/step")}
    assert steps == ({f"{d}/step": 4.0 for d in range(10)} if state == "kept" else {})


def small_network():
    torch.manual_seed(0)
    layers = (torch.nn.Flatten(), torch.nn.Linear(64, 8), torch.nn.ReLU(), torch.nn.Linear(8, 10))
    return slimfl.slimmable(torch.nn.Sequential(*layers))


def test_cohorts_give_the_numbers_of_side_by_side(monkeypatch):
    from slimfl.engines import torch_engine

    settings = SETTINGS | {"rounds": 3, "federation__participation": 0.6}
    with monkeypatch.context() as patch:
        patch.setattr(torch_engine, "SMALL_STEP", 0)
        side_by_side = asking.run(network=small_network(), trust=["summed_step"], **settings)
    as_cohorts = asking.run(network=small_network(), trust=["summed_step"], **settings)
    np.testing.assert_allclose(as_cohorts.parameters, side_by_side.parameters, atol=1e-5)
    for a, b in zip(as_cohorts.lines, side_by_side.lines, strict=True):
        assert a["training_loss"] == pytest.approx(b["training_loss"], rel=1e-4)


class UnequalWeights(SlimFL):
    """Devices with an even number learn from half width alone, the others from full width."""

    def assign(self, device, round, random):
        weights = (0.0, 1.0) if device.id % 2 else (1.0, 0.0)
        return replace(super().assign(device, round, random), weights=weights)


def test_a_device_learns_with_its_own_loss_weights_whoever_trains_beside_it():
    sim = slimfl.round.Simulation(
        slimfl.experiment.build({
            "threads": 1, "engine": "torch", "federation": {"devices": 4},
            "training": {
                "steps": 3, "batch_size": 8, "optimiser": "sgd", "learning_rate": 0.1,
                "optimiser_state": "fresh",
            },
        }),
        dataset=DATASET, network=small_network(), method=UnequalWeights((0.5, 1.0), name="mine"),
    )  # fmt: skip
    assert sim.engine.cohorts_pay
    tasks, start = sim.plan().tasks, sim.global_model
    together = {each.device: each.parameters for each in sim.engine.train(1, start, tasks)}
    for task in tasks:
        (alone,) = sim.engine.train(1, start, [task])
        np.testing.assert_allclose(together[task.device], alone.parameters, rtol=0, atol=1e-6)
    # the columns that only the full width uses stay where they are without its loss
    moved = [np.flatnonzero(together[device] != start) for device in (0, 1)]
    assert len(moved[0]) < len(moved[1])


def test_cohorts_are_chosen_for_small_steps_only():
    experiment = slimfl.experiment.build({"training": {"batch_size": 64}, "engine": "torch"})
    small = slimfl.round.Simulation(experiment, dataset=DATASET, network=small_network())
    large = slimfl.round.Simulation(experiment, dataset=DATASET)
    assert small.engine.cohorts_pay
    assert not large.engine.cohorts_pay


SUMMED = """
def summed(forward, labels, widths, weights, update):
    from torch.nn.functional import cross_entropy
    losses = [cross_entropy(forward(i), labels, reduction="sum") for i in widths]
    update(sum(losses))
    return losses[:{count}]
"""


@pytest.fixture
def own_step(tmp_path, monkeypatch):
    """A step that sums over its batch, which in a cohort would be the batch of all devices."""

    def write(name, count=2):
        (tmp_path / f"{name}.py").write_text(SUMMED.format(count=count))
        return f"{name}:summed"

    monkeypatch.syspath_prepend(str(tmp_path))
    return write


def test_an_own_step_sees_one_device_at_a_time(own_step, monkeypatch):
    from slimfl.engines import torch_engine

    settings = SETTINGS | {"rounds": 2, "training__algorithm": own_step("summed_step")}
    with monkeypatch.context() as patch:
        patch.setattr(torch_engine, "SMALL_STEP", 0)
        side_by_side = asking.run(network=small_network(), trust=["summed_step"], **settings)
    as_cohorts = asking.run(network=small_network(), trust=["summed_step"], **settings)
    np.testing.assert_array_equal(as_cohorts.parameters, side_by_side.parameters)


def test_a_step_that_returns_too_few_losses_is_named(own_step):
    name = own_step("short_step", count=1)
    with pytest.raises(RequestError, match="'short_step:summed' returned 1 losses for 2"):
        asking.run(
            network=small_network(),
            trust=["short_step"],
            **SETTINGS | {"training__algorithm": name},
        )


DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("cohorts", [False, True])
def test_every_torch_device_gives_the_numbers_of_the_cpu(device, cohorts):
    from slimfl.engines import Workload
    from slimfl.engines.torch_engine import TorchEngine

    experiment = slimfl.experiment.build(
        {"training": {"steps": 3, "batch_size": 8}, "engine": "torch"}
    )
    sim = slimfl.round.Simulation(experiment, dataset=DATASET, network=small_network())
    engine = TorchEngine(
        Workload(experiment, DATASET, sim.setting.partition), small_network(), device=device
    )
    engine.cohorts_pay = cohorts
    tasks = sim.plan().tasks
    for round in (1, 2):  # optimiser states go to the host and come back
        reference = list(sim.engine.train(round, sim.global_model, tasks))
        updates = list(engine.train(round, sim.global_model, tasks))
        for update, expected in zip(updates, reference, strict=True):
            np.testing.assert_allclose(update.parameters, expected.parameters, atol=1e-5)
    scores = engine.evaluate(sim.global_model, (0, 1))
    for score, expected in zip(scores, sim.engine.evaluate(sim.global_model, (0, 1)), strict=True):
        assert score.loss == pytest.approx(expected.loss, rel=1e-5)
