"""Initial weights: a function of the seed with the variance that the literature asks for."""

import numpy as np
import pytest
import torch
from torch import nn

from slimfl.nn import SlimConv2d, SlimLinear, ULMobileNet, flatten, initialise

KINDS = ("he", "he-fan-out", "xavier", "torch")


def initialised(kind, seed, network=None):
    network = ULMobileNet() if network is None else network
    initialise(network, kind, seed)
    return network


def assert_variance(weight, expected, kurtosis=3.0):
    """The sample variance lies within 5 standard errors of the expected one; the mean too."""
    values = weight.detach().double().flatten()
    error = np.sqrt((kurtosis - 1) / len(values))
    assert values.square().mean().item() == pytest.approx(expected, rel=5 * error)
    assert abs(values.mean().item()) < 5 * np.sqrt(expected / len(values))


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_a_function_of_the_seed_alone(kind):
    torch.manual_seed(1)
    one = flatten(initialised(kind, 5))
    torch.manual_seed(2)
    torch.rand(7)
    assert np.array_equal(flatten(initialised(kind, 5)), one)
    assert not np.array_equal(flatten(initialised(kind, 6)), one)


def test_it_does_not_draw_from_torchs_global_numbers():
    torch.manual_seed(3)
    expected = torch.rand(1)
    network = ULMobileNet()
    torch.manual_seed(3)
    initialise(network, "he", 0)
    assert torch.rand(1) == expected


def test_he_has_variance_2_over_fan_in_and_no_biases():
    network = initialised("he", 0, ULMobileNet(channels=(128, 128, 256)))
    fan_in = {"stem": 9, "depthwise1": 9, "pointwise1": 128, "depthwise2": 9, "pointwise2": 128}
    for name, count in fan_in.items():
        assert_variance(getattr(network, name).weight, 2 / count)
    assert_variance(network.head.weight, 2 / 256)
    assert not network.head.bias.any()


def test_he_keeps_the_second_moment_of_the_forward_pass():
    """Through ReLUs and without batch norm, 20 layers on, values are neither tiny nor huge."""
    layers = [layer for _ in range(20) for layer in (SlimLinear(400, 400), nn.ReLU())]
    network = initialised("he", 0, nn.Sequential(*layers))
    x = torch.randn(50, 400, generator=torch.Generator().manual_seed(0)).relu()
    ratio = network(x).square().mean() / x.square().mean()
    assert 0.2 < ratio < 5


def test_he_fan_out_has_variance_2_over_fan_out():
    network = initialised("he-fan-out", 1, nn.Sequential(SlimConv2d(40, 80, 3), SlimLinear(50, 90)))
    assert_variance(network[0].weight, 2 / (80 * 9))
    assert_variance(network[1].weight, 2 / 90)


def test_he_fan_out_counts_the_one_channel_that_a_depthwise_input_goes_to():
    """An input of a depthwise convolution goes to 9 outputs, whatever the number of channels."""
    layer = SlimConv2d(128, 128, 3, groups=128)
    initialise(layer, "he-fan-out", 0)
    assert_variance(layer.weight, 2 / 9)


def test_xavier_has_variance_2_over_fan_in_and_fan_out():
    layer = SlimLinear(200, 100)
    initialise(layer, "xavier", 0)
    assert_variance(layer.weight, 2 / 300, kurtosis=1.8)
    assert layer.weight.abs().max() <= (6 / 300) ** 0.5


def test_torch_is_torchs_default_distribution():
    layer, default = SlimLinear(90, 400), nn.Linear(90, 400)
    initialise(layer, "torch", 0)
    for ours, theirs in ((layer.weight, default.weight), (layer.bias, default.bias)):
        assert_variance(ours, 1 / (3 * 90), kurtosis=1.8)
        assert ours.abs().max().item() == pytest.approx(theirs.abs().max().item(), rel=0.05)


def test_plain_torch_layers_are_initialised_too():
    network = nn.Sequential(nn.Conv2d(16, 64, 3), SlimLinear(64, 8), nn.Linear(100, 200))
    before = flatten(network)
    initialise(network, "he", 0)
    assert_variance(network[0].weight, 2 / (16 * 9))
    assert_variance(network[2].weight, 2 / 100)
    assert not network[2].bias.any()
    initialise(network, "he", 1)
    assert not np.isclose(flatten(network), before).all()


def test_layers_do_not_get_the_same_numbers():
    network = initialised("he", 0)
    assert not torch.equal(network.depthwise1.weight, network.depthwise2.weight)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="zeros"):
        initialise(ULMobileNet(), "zeros", 0)
