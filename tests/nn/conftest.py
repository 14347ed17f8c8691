"""Networks built a second time, small and plain, to compare slices with."""

import math
from fractions import Fraction

import pytest
import torch
from torch import nn

from slimfl.nn import ULMobileNet


def share(total, width):
    """Channels of a width: its share of them, rounded up, in exact arithmetic."""
    return math.ceil(total * Fraction(str(width)))


def leading(tensor, shape):
    return tensor.detach()[tuple(slice(0, size) for size in shape)].clone()


@pytest.fixture(name="share")
def share_fixture():
    return share


@pytest.fixture
def small_ul_mobilenet():
    """UL-MobileNet of one width as table I prints it, in torch's own layers, weights copied."""

    def build(network, width):
        first, second, third = (share(c, width) for c in network.channels)
        layers = [
            nn.Conv2d(network.in_channels, first, 3, padding=1, bias=False),
            nn.ReLU6(),
            nn.Conv2d(first, first, 3, padding=1, groups=first, bias=False),
            nn.ReLU6(),
            nn.Conv2d(first, second, 1, bias=False),
            nn.ReLU6(),
            nn.Conv2d(second, second, 3, padding=1, groups=second, bias=False),
            nn.ReLU6(),
            nn.Conv2d(second, third, 1, bias=False),
            nn.ReLU6(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(third, network.classes),
        ]
        small = nn.Sequential(*layers).to(next(network.parameters()).dtype)
        with torch.no_grad():
            for own, whole in zip(small.parameters(), network.parameters(), strict=True):
                own.copy_(leading(whole, own.shape))
        return small

    return build


@pytest.fixture
def precise_network():
    """A small UL-MobileNet in double precision whose units are alive and not saturated."""
    torch.manual_seed(0)
    network = ULMobileNet(in_channels=2, classes=3, channels=(4, 6, 8)).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(std=0.6)
    return network
