"""Segments cut the parameters without overlap or gap, as the network defines."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from slimfl.nn import ULMobileNet, at_width, flatten, segments, slimmable
from tests.networks import Residual


@st.composite
def nested_widths(draw):
    inner = draw(st.lists(st.integers(1, 99), max_size=4, unique=True))
    return (*(n / 100 for n in sorted(inner)), 1.0)


@st.composite
def plans(draw):
    """A random convolutional network: channels of its layers, depthwise layers between them."""
    channels = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    depthwise = [draw(st.booleans()) and c > 1 for c in channels]
    hidden = draw(st.lists(st.integers(1, 9), max_size=2))
    return channels, depthwise, hidden, draw(st.booleans())


def plain_network(plan, narrow=lambda total: total):
    """The network of a plan in torch's own layers, every inner size made narrow."""
    channels, depthwise, hidden, bias = plan
    layers, into = [], 2
    for total, extra in zip(channels, depthwise, strict=True):
        out = narrow(total)
        layers += [nn.Conv2d(into, out, 3, padding=1, bias=bias), nn.Tanh()]
        if extra:
            layers += [nn.Conv2d(out, out, 3, padding=1, groups=out, bias=bias), nn.Tanh()]
        into = out
    layers += [nn.AdaptiveAvgPool2d(2), nn.Flatten()]
    into *= 4
    for total in hidden:
        layers += [nn.Linear(into, narrow(total), bias=bias), nn.Tanh()]
        into = narrow(total)
    layers += [nn.Linear(into, 3, bias=bias)]
    return nn.Sequential(*layers)


@settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(plans(), nested_widths())
def test_segments_partition_the_parameters_of_random_networks(share, plan, widths):
    network = slimmable(plain_network(plan))
    cut = segments(network, widths)
    count = flatten(network).size
    everywhere = np.concatenate(cut.positions)
    assert sorted(everywhere.tolist()) == list(range(count))
    assert cut.sizes.tolist() == [len(positions) for positions in cut.positions]
    assert cut.sizes.sum() == count
    masks = [cut.mask(width) for width in widths]
    assert masks[-1].all()
    for index, (narrow, wide) in enumerate(itertools.pairwise(masks)):
        assert (narrow <= wide).all()
        assert np.array_equal(np.flatnonzero(wide & ~narrow), cut.positions[index + 1])
    for width, mask in zip(widths, masks, strict=True):
        small = plain_network(plan, lambda total, width=width: share(total, width))
        assert mask.sum() == sum(parameter.numel() for parameter in small.parameters())


def influences(network, images, width):
    """Which flat parameters change the output at a width when they are changed alone."""
    found = []
    with at_width(width), torch.no_grad():
        before = network(images)
        for parameter in network.parameters():
            for value in parameter.view(-1):
                old = value.item()
                value.fill_(old + 0.25)
                found.append(not torch.equal(network(images), before))
                value.fill_(old)
    return np.array(found)


def test_a_mask_is_what_influences_the_output_of_an_adapted_network():
    torch.manual_seed(1)
    network = slimmable(plain_network(([3, 4], [False, True], [3], True))).double()
    widths = (0.3, 0.5, 1.0)
    cut = segments(network, widths)
    images = torch.randn(2, 2, 4, 4, dtype=torch.float64)
    for width in widths:
        assert np.array_equal(influences(network, images, width), cut.mask(width))


def test_a_mask_is_what_influences_the_output_of_ul_mobilenet():
    torch.manual_seed(1)
    network = ULMobileNet(classes=2, channels=(2, 3, 4)).double()
    with torch.no_grad():  # positive and small, so that no unit is dead or saturated
        for parameter in network.parameters():
            parameter.uniform_(0.1, 0.3)
    widths = (0.25, 0.5, 1.0)
    cut = segments(network, widths)
    images = torch.rand(2, 1, 3, 3, dtype=torch.float64)
    for width in widths:
        assert np.array_equal(influences(network, images, width), cut.mask(width))


def test_an_own_network_needs_no_registration():
    torch.manual_seed(2)
    network = Residual(classes=2).double()
    widths = (0.2, 0.6, 1.0)
    cut = segments(network, widths)
    images = torch.randn(3, 1, 4, 4, dtype=torch.float64)
    for width in widths:
        assert np.array_equal(influences(network, images, width), cut.mask(width))


def test_what_is_not_slimmable_is_in_segment_1():
    network = Residual()
    cut = segments(network, (0.5, 1.0))
    start = 0
    for name, parameter in network.named_parameters():
        block = cut.segment_of[start : start + parameter.numel()]
        start += parameter.numel()
        if name.startswith(("offset", "last")):
            assert (block == 0).all()
        elif name.startswith(("enter", "middle", "scale", "head.weight")):
            assert set(block.tolist()) == {0, 1}


def test_one_width_is_one_segment():
    cut = segments(ULMobileNet(), (1.0,))
    assert cut.sizes.tolist() == [4586]
    assert cut.mask(1.0).all()


def test_a_width_that_was_not_cut_has_no_mask():
    with pytest.raises(ValueError, match=r"0\.3|not in"):
        segments(ULMobileNet(), (0.5, 1.0)).mask(0.3)
