"""The published result of FedProx: its devices, its stragglers, and that it runs."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from slimfl.data import Dataset, synthetic
from slimfl.devices import Device
from slimfl.rng import generator

SCRIPT = Path(__file__).parents[2] / "examples/fedprox_mnist.py"
LABELS = np.repeat(np.arange(10), 6000)


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("fedprox_mnist", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_device_holds_two_neighbouring_classes_and_sizes_are_unequal(example):
    owner = example.holders(LABELS, 1000, seed=1)
    counts = np.zeros((1000, 10), int)
    for device, label in zip(owner, LABELS, strict=True):
        if device >= 0:
            counts[device, label] += 1
    held = counts > 0
    for device in range(1000):
        first = device % 10
        assert np.flatnonzero(held[device]).tolist() == sorted({first, (first + 1) % 10})
    assert counts[held].min() >= 5
    assert counts.sum() > 0.97 * len(LABELS)
    sizes = np.sort(counts.sum(1))
    assert sizes[-100:].sum() > 0.5 * sizes.sum()  # a tenth of the devices has the most


def test_stragglers_are_dropped_or_do_a_part_of_their_work(example):
    def assigned(drop, number):
        method = example.Stragglers(0.9, drop)
        device = Device(id=number, samples=10, max_width=0, power_dbm=0.0, distance_m=1.0)
        return method.assign(device, 1, lambda: generator(5, "assignment", 1, number))

    kept = [assigned(False, number) for number in range(2000)]
    dropped = [assigned(True, number) for number in range(2000)]
    late = [each.effort < 1 for each in kept]
    assert [each is None for each in dropped] == late
    assert np.mean(late) == pytest.approx(0.9, abs=0.03)
    assert {round(10 * each.effort) for each in kept} == set(range(1, 11))


def test_stragglers_train_on_fewer_images_and_the_example_runs(example, monkeypatch):
    data = synthetic(train=600, test=100, size=6)
    own = Dataset.from_arrays(
        data.train.images, data.train.labels, data.test.images, data.test.labels,
        holders=np.arange(600) % 20,
    )  # fmt: skip
    small = {"federation": {"devices": 20, "participation": 0.5}, "rounds": 3,
             "model": {"options": {"hidden": (), "rows": 6, "columns": 6}}}  # fmt: skip
    images, run = {}, example.slimfl.Experiment.run

    def noted(experiment):
        made = run(experiment)
        chance = experiment.own_parts()["method"].chance
        images[chance] = sum(line.images for line in made.lines)
        return made

    monkeypatch.setattr(example.slimfl.Experiment, "run", noted)
    for chance in (0.0, 0.9):
        reached = example.accuracy(own, example.Stragglers(chance, drop=False), 2.0, 0, **small)
        assert 0 < reached <= 1
    # 10 devices of 30 samples in 3 rounds of 10 epochs; a straggler takes half of them on average
    assert images[0.0] == 10 * 30 * 3 * 10
    assert 0.4 < images[0.9] / images[0.0] < 0.75
