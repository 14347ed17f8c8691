"""A cohort with a leading device axis gives the numbers of one device after the other."""

from dataclasses import replace

import numpy as np
import pytest
from torch import nn

from slimfl.data import synthetic
from slimfl.experiment import TrainingSection
from slimfl.nn import ULMobileNet, flatten, initialise, slimmable
from slimfl.training import (
    CohortTrainer,
    Images,
    LocalTrainer,
    Work,
    cohort_key,
    local_schedule,
)

DATASET = synthetic(train=300, test=20, size=8)
IMAGES = Images(DATASET.train, *DATASET.normalisation("standard"))
WIDTHS = (0.25, 0.5, 1.0)


def perceptron():
    return slimmable(nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, 10)))


def schedules(section, work, round, devices=3):
    return [
        local_schedule(
            section,
            work,
            np.arange(device * 40, device * 40 + 30),
            width_count=3,
            rounds=5,
            seed=2,
            round=round,
            device=device,
        )
        for device in range(devices)
    ]


def assert_close_in_norm(actual, expected):
    """Compare a whole buffer, not its elements.

    A gradient is a sum whose terms cancel, so the rounding error of one element is in proportion to
    the terms and not to what is left of them: no relative bound holds for each element. In the norm
    of the whole buffer the large elements count, and there the bound holds on every processor.
    """
    assert actual.shape == expected.shape
    assert np.linalg.norm(actual - expected) <= 1e-3 * np.linalg.norm(expected)


@pytest.mark.parametrize("network", [perceptron, ULMobileNet])
@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
@pytest.mark.parametrize(
    ("algorithm", "order", "widths"),
    [
        ("sustrain", "sequential", (0, 1, 2)),
        ("ustrain", "sequential", (0, 1, 2)),
        ("slimtrain", "accumulate", (0, 1, 2)),
        ("sustrain", "sequential", (1,)),
    ],
)
def test_equals_one_device_after_the_other(network, optimiser, algorithm, order, widths):
    section = TrainingSection(
        algorithm=algorithm, order=order, optimiser=optimiser, epochs=2, batch_size=8
    )
    net = network()
    initialise(net, "he", 1)
    start = flatten(net)
    alone, together = LocalTrainer(net, WIDTHS, section), CohortTrainer(network(), WIDTHS, section)
    states_alone, states_together = [None] * 3, [None] * 3
    for round in (1, 2):  # the second round starts from the optimiser states of the first
        made = schedules(section, Work(widths), round)
        one = [alone.train(start, w, IMAGES, s) for w, s in zip(made, states_alone, strict=True)]
        all_ = together.train(start, made, IMAGES, states_together)
        states_alone = [state for _, state, _ in one]
        states_together = [state for _, state, _ in all_]
        for (a, state_a, _), (b, state_b, _) in zip(one, all_, strict=True):
            np.testing.assert_allclose(b, a, rtol=0, atol=2e-5)
            assert np.abs(a - start).max() > 1e-3
            assert state_a.keys() == state_b.keys()
            for name in state_a:
                assert_close_in_norm(state_b[name], state_a[name])
        losses = np.mean([loss for _, _, loss in one], axis=0)
        np.testing.assert_allclose(all_[0][2], losses, rtol=1e-4)


def test_lessons_of_another_shape_have_another_key():
    section = TrainingSection(epochs=1, batch_size=8)
    all_widths, one = Work((0, 1, 2)), Work((2,))
    first, second, _ = schedules(section, all_widths, 1)
    assert cohort_key(first, None) == cohort_key(second, None)
    assert cohort_key(first, None) != cohort_key(schedules(section, one, 1)[0], None)
    stepped = {"step": np.array(4.0, np.float32)}
    assert cohort_key(first, stepped) != cohort_key(first, None)
    shorter = schedules(TrainingSection(steps=2, batch_size=8), all_widths, 1)[0]
    assert cohort_key(first, None) != cohort_key(shorter, None)


def test_lessons_with_other_weights_or_learning_rates_have_another_key():
    """The cohort takes both from its first device."""
    section = TrainingSection(epochs=1, batch_size=8)
    first = schedules(section, Work((0, 1, 2)), 1)[0]
    weighted = schedules(section, Work((0, 1, 2), weights=(0.0, 0.5, 0.5)), 1)[0]
    assert cohort_key(first, None) != cohort_key(weighted, None)
    slower = replace(first, learning_rates=first.learning_rates / 2)
    assert cohort_key(first, None) != cohort_key(slower, None)
