"""What a round reports about its local training: images, multiply-adds, learning rate."""

from collections import Counter
from itertools import pairwise
from statistics import median
from typing import ClassVar

import numpy as np
import pytest
from torch import nn

import slimfl
from slimfl.data import synthetic
from slimfl.engines import Workload, torch_engine
from slimfl.experiment import build
from slimfl.nn.widths import active_width
from slimfl.round import Simulation
from slimfl.training import planned_images

DATASET = synthetic(train=300, test=20, size=6)
FOUR = (0.25, 0.5, 0.75, 1.0)

#: Devices hold from 1 to about 100 samples, so batches of 16 are short in all but a few steps.
LESSONS = {
    "short last batches": {"steps": 7, "batch_size": 16},
    "less than an epoch": {"steps": 1, "batch_size": 4},
    "over the end of epochs": {"steps": 11, "batch_size": 32},
    "whole epochs": {"epochs": 3, "batch_size": 16},
    "sandwich rule": {"steps": 9, "batch_size": 8, "algorithm": "ustrain", "sampled_widths": 3},
    "sandwich in epochs": {"epochs": 2, "algorithm": "ustrain", "sampled_widths": 2},
}


def experiment(training, **changes):
    return build(
        {
            "rounds": 3,
            "threads": 1,
            "data": {"alpha": 0.3, "min_samples": 1},
            "model": {"widths": FOUR},
            "training": training,
            **changes,
        }
    )


def schedules(sim, number):
    """Those of all devices; they are asked the same in every round."""
    workload = Workload(sim.experiment, sim.setting.dataset, sim.setting.partition)
    tasks = sim.plan().tasks
    assert len(tasks) == sim.experiment.federation.devices
    return workload.schedules(number, tasks)


def walked(sim, number):
    """[device][width]: images counted one batch and one width at a time."""
    counts = []
    for schedule in schedules(sim, number):
        seen = [0] * len(FOUR)
        for step, (begin, end) in enumerate(pairwise(schedule.batch_offsets.tolist())):
            for _ in schedule.samples[begin:end]:
                for width, taking_part in enumerate(schedule.visits[step]):
                    seen[width] += bool(taking_part)
        counts.append(seen)
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("lesson", LESSONS)
@pytest.mark.parametrize("method", ["slimfl", "vanilla-0.5x"])
@pytest.mark.parametrize("engine", ["torch", "torch in cohorts", "native"])
def test_images_and_multiply_adds_are_those_of_the_batches_taken(
    engine, method, lesson, monkeypatch
):
    monkeypatch.setattr(torch_engine, "SMALL_STEP", 1e12 if "cohorts" in engine else 0)
    described = experiment(LESSONS[lesson], method=method, engine=engine.split()[0])
    sim = Simulation(described, dataset=DATASET)
    line = sim.step()
    counts = walked(sim, 1)
    work = 0
    for seen in counts:
        for count, per_image in zip(seen, sim.setting.multiply_adds, strict=True):
            work += 3 * count * per_image
    assert line["multiply_adds"] == work
    # an image counts once however many widths it trained; the widest is in every step
    assert line["images"] == sum(max(seen) for seen in counts)


@pytest.mark.parametrize("method", ["fjord", "fjord-kd", "heterofl", "us-net"])
@pytest.mark.parametrize("lesson", LESSONS)
def test_an_image_counts_once_whichever_widths_a_rival_draws(method, lesson):
    sim = Simulation(experiment(LESSONS[lesson], method=method), dataset=DATASET)
    line = sim.step()
    assert line["images"] == sum(len(each.samples) for each in schedules(sim, 1))


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_images_of_a_round_are_known_before_it(lesson):
    sim = Simulation(experiment(LESSONS[lesson]), dataset=DATASET)
    for number in (1, 2):
        planned = [
            planned_images(
                sim.experiment.training,
                task.work,
                int(sim.setting.partition.sizes[task.device]),
                width_count=len(FOUR),
                seed=sim.experiment.seed,
                round=number,
                device=task.device,
            ).tolist()
            for task in sim.plan().tasks
        ]
        assert planned == walked(sim, number)


class CountsImages(nn.Module):
    """A small network that notes how many images pass at which width while it trains."""

    passed: ClassVar[Counter] = Counter()

    def __init__(self):
        super().__init__()
        self.one = slimfl.nn.SlimLinear(36, 8, slim_in=False)
        self.two = slimfl.nn.SlimLinear(8, 10, slim_out=False)

    def forward(self, x):
        if self.training:
            self.passed[active_width()] += len(x)
        return self.two(self.one(x.flatten(1)).relu())


@pytest.mark.parametrize("lesson", LESSONS)
def test_what_is_reported_is_what_passed_through_the_network(lesson, monkeypatch):
    monkeypatch.setattr(torch_engine, "SMALL_STEP", 0)
    sim = Simulation(
        experiment(LESSONS[lesson], engine="torch"), dataset=DATASET, network=CountsImages()
    )
    CountsImages.passed.clear()
    line = sim.step()
    passed = [CountsImages.passed[width] for width in FOUR]
    assert line["images"] == passed[-1]
    assert line["multiply_adds"] == 3 * sum(
        count * per_image
        for count, per_image in zip(passed, sim.setting.multiply_adds, strict=True)
    )


def test_steps_over_a_small_share_do_not_count_full_batches():
    """10 samples in batches of 16: every step sees 10, not 16; 7 of 4 see 4, 4, 2, 4, 4, 2, 4."""
    images = {}
    for batch_size in (16, 4):
        described = build(
            {
                "training": {"steps": 7, "batch_size": batch_size},
                "data": {"partition": "iid", "min_samples": 1},
                "federation": {"devices": 30},
            }
        )
        images[batch_size] = Simulation(described, dataset=DATASET).step()["images"]
    assert images == {16: 30 * 7 * 10, 4: 30 * 24}


@pytest.mark.parametrize(
    "training",
    [
        {"epochs": 2, "batch_size": 16, "schedule": "theorem1", "smoothness": 4.0},
        {"steps": 5, "batch_size": 16, "schedule": "theorem1", "smoothness": 4.0},
        {"epochs": 2, "schedule": "cosine"},
        {"steps": 5},
    ],
)
def test_the_learning_rate_is_that_of_the_first_step_taken(training):
    sim = Simulation(experiment(training), dataset=DATASET)
    for number in (1, 2, 3):
        used = [float(schedule.learning_rates[0]) for schedule in schedules(sim, number)]
        assert sim.step()["learning_rate"] == median(used)


def test_theorem_1_with_equal_devices_in_whole_epochs():
    """30 samples in batches of 8 are 4 steps per epoch, so round 3 of 2 epochs begins at t = 17."""
    training = {"epochs": 2, "batch_size": 8, "schedule": "theorem1", "smoothness": 4.0}
    described = experiment(training, data={"partition": "iid"})
    sim = Simulation(described, dataset=DATASET)
    rates = [sim.step()["learning_rate"] for _ in range(3)]
    np.testing.assert_allclose(rates, [2 / (t + 2 * 4.0 - 1) for t in (1, 9, 17)])


def test_a_round_in_which_nobody_trained_has_no_learning_rate():
    described = experiment({"steps": 1}, federation={"dropout": 0.999999})
    line = Simulation(described, dataset=DATASET).step()
    assert (line["learning_rate"], line["images"], line["multiply_adds"]) == (None, 0, 0)
