"""Optimisers whose state can be exported and imported."""

import numpy as np
import pytest
import torch
from torch import nn

from slimfl.experiment import TrainingSection
from slimfl.training.optimisers import export_state, import_state, optimiser

SECTIONS = {
    "adam": TrainingSection(learning_rate=0.1, betas=(0.8, 0.99), weight_decay=0.01),
    "momentum": TrainingSection(optimiser="sgd", learning_rate=0.1, momentum=0.7, nesterov=True),
    "plain sgd": TrainingSection(optimiser="sgd", learning_rate=0.1, momentum=0.0),
}


@pytest.fixture(params=SECTIONS, ids=SECTIONS.get)
def section(request):
    return SECTIONS[request.param]


def step(optim, values, number):
    values.grad = torch.sin(torch.arange(6) + number) + values.detach()
    optim.step()


def fresh():
    return nn.Parameter(torch.linspace(-1, 1, 6))


def test_adam_by_hand():
    values = nn.Parameter(torch.tensor([1.0]))
    optim = optimiser(
        TrainingSection(learning_rate=0.1, betas=(0.8, 0.9), weight_decay=0.5), values
    )
    first = second = 0.0
    expected = 1.0
    for number in (1, 2, 3):
        values.grad = torch.tensor([0.3 * number])
        gradient = 0.3 * number + 0.5 * expected
        first = 0.8 * first + 0.2 * gradient
        second = 0.9 * second + 0.1 * gradient**2
        expected -= 0.1 * (first / (1 - 0.8**number)) / (second / (1 - 0.9**number)) ** 0.5
        optim.step()
        assert values.item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd_by_hand(nesterov):
    values = nn.Parameter(torch.tensor([1.0]))
    section = TrainingSection(
        optimiser="sgd", learning_rate=0.1, momentum=0.5, weight_decay=0.2, nesterov=nesterov
    )
    optim = optimiser(section, values)
    velocity, expected = 0.0, 1.0
    for number in (1, 2, 3):
        values.grad = torch.tensor([float(number)])
        gradient = number + 0.2 * expected
        velocity = 0.5 * velocity + gradient
        expected -= 0.1 * (gradient + 0.5 * velocity if nesterov else velocity)
        optim.step()
        assert values.item() == pytest.approx(expected, rel=1e-5)


def test_a_state_that_leaves_and_comes_back_goes_on_bit_for_bit(section):
    straight, resumed = fresh(), fresh()
    one = optimiser(section, straight)
    for number in range(6):
        step(one, straight, number)
    two = optimiser(section, resumed)
    for number in range(3):
        step(two, resumed, number)
    state = export_state(two, resumed)
    assert all(isinstance(value, np.ndarray) for value in state.values())
    three = optimiser(section, resumed)
    import_state(three, resumed, state)
    for number in range(3, 6):
        step(three, resumed, number)
    assert torch.equal(straight, resumed)


def test_an_exported_state_is_a_copy_and_an_imported_one_too(section):
    values = fresh()
    optim = optimiser(section, values)
    step(optim, values, 0)
    state = export_state(optim, values)
    kept = {name: value.copy() for name, value in state.items()}
    step(optim, values, 1)
    import_state(optim, values, state)
    step(optim, values, 2)
    assert all(np.array_equal(state[name], kept[name]) for name in kept)


@pytest.mark.parametrize("nothing", [None, {}])
def test_no_state_is_a_fresh_start_also_after_other_devices(section, nothing):
    values, reference = fresh(), fresh()
    optim = optimiser(section, values)
    assert export_state(optim, values) == {}
    step(optim, values, 5)
    values.data.copy_(reference.data)
    import_state(optim, values, nothing)
    unused = optimiser(section, reference)
    step(optim, values, 1)
    step(unused, reference, 1)
    assert torch.equal(values, reference)
