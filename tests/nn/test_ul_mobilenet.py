"""UL-MobileNet against table I, built a second time from torch's own layers."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slimfl.nn import ULMobileNet, at_width, flatten, segments


def test_the_shapes_are_those_of_table_1():
    shapes = [tuple(parameter.shape) for parameter in ULMobileNet().parameters()]
    assert shapes == [
        (32, 1, 3, 3), (32, 1, 3, 3), (32, 32, 1, 1), (32, 1, 3, 3), (64, 32, 1, 1), (10, 64),
        (10,),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("width", "count"),
    [
        (1.0, 4586),
        (0.5, 1530),
        # by hand: 8*9 + 8*9 + 8*8 + 8*9 + 8*16 + 16*10 + 10
        (0.25, 578),
    ],
)
def test_parameter_counts(width, count, small_ul_mobilenet):
    network = ULMobileNet()
    assert segments(network, tuple(sorted({width, 1.0}))).mask(width).sum() == count
    small = small_ul_mobilenet(network, width)
    assert sum(parameter.numel() for parameter in small.parameters()) == count
    assert flatten(network).size == 4586


@settings(
    deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(width=st.integers(1, 100).map(lambda n: n / 100), seed=st.integers(0, 99))
def test_a_width_is_the_small_network_with_copied_weights(
    width, seed, precise_network, small_ul_mobilenet
):
    images = torch.randn(
        3, 2, 6, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
    )
    with at_width(width):
        logits = precise_network(images)
    torch.testing.assert_close(logits, small_ul_mobilenet(precise_network, width)(images))


@pytest.mark.parametrize("width", [0.25, 0.5, 0.75, 1.0])
def test_gradients_of_a_width_are_the_small_networks_inside_and_zero_outside_the_mask(
    width, precise_network, small_ul_mobilenet
):
    images = torch.randn(4, 2, 6, 6, dtype=torch.float64)
    toward = torch.randn(4, 3, dtype=torch.float64)
    small = small_ul_mobilenet(precise_network, width)
    (small(images) * toward).sum().backward()
    with at_width(width):
        (precise_network(images) * toward).sum().backward()
    mask = segments(precise_network, (0.25, 0.5, 0.75, 1.0)).mask(width)
    gradients = torch.cat([p.grad.reshape(-1) for p in precise_network.parameters()])
    expected = torch.cat([p.grad.reshape(-1) for p in small.parameters()])
    assert not gradients[~mask].any()
    torch.testing.assert_close(gradients[mask], expected)
    assert (expected != 0).float().mean() > 0.5


def test_the_narrow_logits_ignore_the_rest_of_the_weights():
    network, images = ULMobileNet(), torch.randn(2, 1, 28, 28)
    with at_width(0.5), torch.no_grad():
        before = network(images)
        network.pointwise2.weight[:, 16:] = 99.0
        network.pointwise2.weight[32:] = 99.0
        network.head.weight[:, 32:] = 99.0
        network.stem.weight[16:] = 99.0
        assert torch.equal(network(images), before)
        network.head.bias[9] += 1.0
        assert not torch.equal(network(images), before)


def test_active_channels_are_those_of_the_small_network(small_ul_mobilenet):
    network = ULMobileNet(channels=(5, 6, 9))
    for width in (0.1, 0.25, 0.5, 0.7, 1.0):
        small = small_ul_mobilenet(network, width)
        built = tuple(small[index].out_channels for index in (0, 4, 8))
        assert network.active_channels(width) == built
