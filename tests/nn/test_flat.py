"""One flat vector for all parameters: copies are copies, views are views."""

import numpy as np
import pytest
import torch
from torch import nn

from slimfl.nn import FlatView, ULMobileNet, at_width, flatten, load_flat, segments


@pytest.fixture
def network():
    torch.manual_seed(0)
    return ULMobileNet(classes=3, channels=(4, 4, 6))


def test_flatten_puts_the_parameters_in_their_named_order(network):
    vector = flatten(network)
    start = 0
    for _, parameter in network.named_parameters():
        size = parameter.numel()
        block = vector[start : start + size].reshape(parameter.shape)
        assert np.array_equal(block, parameter.detach().numpy())
        start += size
    assert start == vector.size
    assert vector.dtype == np.float32


def test_flatten_and_load_flat_are_inverse(network):
    other = ULMobileNet(classes=3, channels=(4, 4, 6))
    assert not np.array_equal(flatten(other), flatten(network))
    load_flat(other, flatten(network))
    assert np.array_equal(flatten(other), flatten(network))
    vector = np.arange(flatten(network).size, dtype=np.float32)
    load_flat(network, vector)
    assert np.array_equal(flatten(network), vector)


@pytest.mark.parametrize("make", [lambda: nn.Linear(2, 2), lambda: nn.Linear(2, 2, bias=False)])
def test_flat_vectors_share_no_memory_with_the_network(make):
    network = make()
    vector = flatten(network)
    before = vector.copy()
    with torch.no_grad():
        network.weight.fill_(7)
    assert np.array_equal(vector, before)
    load_flat(network, vector)
    vector[:] = 9
    assert np.array_equal(flatten(network), before)


def test_load_flat_takes_strided_and_read_only_vectors(network):
    wide = np.arange(2 * flatten(network).size, dtype=np.float32)
    vector = wide[::2]
    vector.flags.writeable = False
    load_flat(network, vector)
    assert np.array_equal(flatten(network), vector)


@pytest.mark.parametrize("change", [-1, 1])
def test_a_vector_of_another_network_is_not_loaded(network, change):
    vector = np.zeros(flatten(network).size + change, np.float32)
    with pytest.raises((ValueError, RuntimeError)):
        load_flat(network, vector)


def test_a_flat_view_shares_memory_both_ways(network):
    view = FlatView(network)
    view.values.data.copy_(torch.arange(view.values.numel()))
    assert network.stem.weight.flatten().tolist() == list(range(36))
    with torch.no_grad():
        network.head.bias.fill_(-5)
    assert view.values[-3:].tolist() == [-5, -5, -5]


def test_gradients_land_in_the_flat_vector_and_add_up(network):
    plain = ULMobileNet(classes=3, channels=(4, 4, 6))
    load_flat(plain, flatten(network))
    view = FlatView(network)
    images = torch.randn(2, 1, 8, 8)
    for repetition in (1, 2):
        for width in (0.5, 1.0):
            with at_width(width):
                network(images).square().sum().backward()
                plain(images).square().sum().backward()
        expected = torch.cat([p.grad.reshape(-1) for p in plain.parameters()])
        torch.testing.assert_close(view.gradients, expected)
        assert view.values.grad is view.gradients
        assert view.gradients.any(), repetition
    view.gradients.zero_()
    assert not any(parameter.grad.any() for parameter in network.parameters())


def test_a_narrow_width_leaves_the_flat_gradient_outside_its_mask_zero(network):
    view = FlatView(network)
    with at_width(0.5):
        network(torch.randn(2, 1, 8, 8)).square().sum().backward()
    mask = segments(network, (0.5, 1.0)).mask(0.5)
    assert not view.gradients[~mask].any()
    assert view.gradients[mask].any()


def test_a_step_on_the_flat_vector_moves_the_network(network):
    view = FlatView(network)
    before = flatten(network)
    network(torch.randn(2, 1, 8, 8)).sum().backward()
    torch.optim.SGD([view.values], lr=0.5).step()
    expected = before - 0.5 * view.gradients.numpy()
    np.testing.assert_allclose(flatten(network), expected, rtol=1e-6)
    assert not np.array_equal(flatten(network), before)
