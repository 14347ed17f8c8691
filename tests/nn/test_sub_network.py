"""A sub-network on its own computes what the slimmable one computes at that width."""

import copy
import io
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from slimfl.errors import RequestError
from slimfl.nn import (
    SlimConv2d,
    SlimLinear,
    ULMobileNet,
    active_width,
    at_width,
    segments,
    slimmable,
    standalone,
)
from tests.networks import Residual

WIDTHS = (0.25, 0.5, 0.7, 1.0)


def sequential():
    return slimmable(
        nn.Sequential(
            nn.Conv2d(1, 6, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(6, 6, (3, 5), padding="same", dilation=2, groups=6, bias=False),
            nn.Conv2d(6, 8, 1),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(32, 10),
            nn.Tanh(),
            nn.Linear(10, 3, bias=False),
        )
    )


class Standardised(SlimConv2d):
    """A layer with another forward than its parent's: the parent's plain form is not its own."""

    def forward(self, x):
        out, into = self.active_shapes(active_width())["weight"][:2]
        weight = self.weight[:out, :into]
        return F.conv2d(x, weight / (1 + weight.norm()), self.bias[:out])


def standardised():
    return nn.Sequential(
        SlimConv2d(1, 4, 3, slim_in=False), nn.ReLU(), Standardised(4, 4, 1),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), SlimLinear(4, 3, slim_out=False),
    )  # fmt: skip


NETWORKS = {
    "UL-MobileNet": ULMobileNet,
    "adapted": sequential,
    "own": partial(Residual, asks_for_width=True),
    "subclass": standardised,
}


@pytest.fixture(params=NETWORKS)
def network(request):
    torch.manual_seed(3)
    return NETWORKS[request.param]()


@pytest.mark.parametrize("width", WIDTHS)
def test_it_computes_what_the_width_computes_and_has_its_parameters_alone(network, width):
    images = torch.randn(5, 1, 12, 12)
    small = standalone(network, width)
    with at_width(width):
        expected = network(images)
    torch.testing.assert_close(small(images), expected, rtol=1e-5, atol=1e-6)
    cut = segments(network, WIDTHS)
    assert sum(p.numel() for p in small.parameters()) == cut.mask(width).sum()
    assert list(small.state_dict()) == list(network.state_dict())


def test_the_surrounding_width_does_not_matter(network):
    images = torch.randn(2, 1, 12, 12)
    small = standalone(network, 0.5)
    expected = small(images)
    with at_width(0.25):
        assert torch.equal(small(images), expected)


def test_gradients_are_those_of_the_width_and_weights_are_not_shared(network):
    images, labels = torch.randn(4, 1, 12, 12), torch.tensor([0, 1, 2, 0])
    before = copy.deepcopy(network.state_dict())
    small = standalone(network, 0.5)
    F.cross_entropy(small(images), labels).backward()
    with at_width(0.5):
        F.cross_entropy(network(images), labels).backward()
    for (name, own), whole in zip(small.named_parameters(), network.parameters(), strict=True):
        block = whole.grad[tuple(slice(0, size) for size in own.shape)]
        torch.testing.assert_close(own.grad, block, rtol=1e-4, atol=1e-6, msg=name)
    torch.optim.SGD(small.parameters(), lr=1.0).step()
    assert all(torch.equal(before[key], value) for key, value in network.state_dict().items())


@pytest.mark.parametrize("make", [ULMobileNet, sequential])
def test_nothing_of_slimfl_is_left(make):
    small = standalone(make(), 0.5)
    assert all(type(module).__module__.startswith("torch.nn") for module in small.modules())


def test_a_copy_of_it_uses_its_own_weights():
    small = standalone(Residual(asks_for_width=True), 0.5)
    twin = copy.deepcopy(small)
    images = torch.randn(2, 1, 12, 12)
    expected = small(images)
    with torch.no_grad():
        for parameter in small.parameters():
            parameter.zero_()
    torch.testing.assert_close(twin(images), expected)


def test_its_state_loads_into_another_one():
    torch.manual_seed(0)
    one, other = (standalone(ULMobileNet(), 0.5) for _ in range(2))
    file = io.BytesIO()
    torch.save(one.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    images = torch.randn(2, 1, 12, 12)
    assert torch.equal(one(images), other(images))


def test_mode_precision_and_frozen_parameters_are_kept():
    network = sequential().double().eval()
    network[0].weight.requires_grad_(False)
    small = standalone(network, 0.5)
    assert small[0].weight.dtype == torch.float64
    assert not any(module.training for module in small.modules())
    assert [p.requires_grad for p in small.parameters()] == [
        p.requires_grad for p in network.parameters()
    ]


def test_tied_weights_stay_tied():
    network = nn.Sequential(SlimLinear(6, 6), nn.Tanh(), SlimLinear(6, 6))
    network[2].weight = network[0].weight
    small = standalone(network, 0.5)
    assert small[0].weight is small[2].weight
    count = sum(p.numel() for p in small.parameters())
    assert count == segments(network, (0.5, 1.0)).sizes[0]


def test_random_numbers_are_not_drawn():
    network = ULMobileNet()
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    standalone(network, 0.5)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("width", [0.0, -0.5, 1.5, float("nan")])
def test_what_is_no_width_is_refused(width):
    with pytest.raises(RequestError, match="width"):
        standalone(ULMobileNet(), width)
