"""From a name to a network: ours, a user's own, and requests that cannot be met."""

import textwrap

import numpy as np
import pytest
import torch

from slimfl.errors import RequestError
from slimfl.nn import ULMobileNet, at_width, build, flatten, segments

OWN = """
    import torch
    from torch import nn
    from slimfl.nn import SlimConv2d, SlimLinear, slimmable

    class Own(nn.Module):
        def __init__(self, classes, hidden=8):
            super().__init__()
            self.enter = SlimConv2d(1, hidden, 3, slim_in=False)
            self.head = SlimLinear(hidden, classes, slim_out=False)

        def forward(self, images):
            return self.head(torch.relu(self.enter(images)).mean((2, 3)))

    def adapted(in_channels, classes):
        return slimmable(nn.Sequential(
            nn.Conv2d(in_channels, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Linear(8, classes),
        ))

    class Scale(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.factor = nn.Parameter(torch.rand(channels))

        def active_shapes(self, width):
            return {"factor": (-(-len(self.factor) * round(100 * width) // 100),)}

        def forward(self, x):
            return x * self.factor[: x.shape[1]].view(1, -1, 1, 1)

    def scaled(classes):
        return nn.Sequential(
            SlimConv2d(1, 8, 3, slim_in=False), Scale(8), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            SlimLinear(8, classes, slim_out=False),
        )

    def normed(classes):
        return nn.Sequential(
            nn.BatchNorm2d(1), SlimConv2d(1, 8, 3, slim_in=False), nn.AdaptiveAvgPool2d(1),
            nn.Flatten(), SlimLinear(8, classes, slim_out=False),
        )

    def plain():
        return nn.Linear(2, 2)

    def number():
        return 5

    constant = 5
"""


@pytest.fixture(autouse=True)
def own_module(tmp_path, monkeypatch):
    (tmp_path / "own_networks_for_tests.py").write_text(textwrap.dedent(OWN))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("SLIMFL_TRUST", "own_networks_for_tests,no_such_package,torch.nn")


def test_ul_mobilenet_is_told_the_shape_of_the_data():
    network = build("ul-mobilenet", {}, in_channels=3, classes=7, seed=1)
    assert isinstance(network, ULMobileNet)
    assert network(torch.zeros(2, 3, 8, 8)).shape == (2, 7)
    assert flatten(build("ul-mobilenet", {})).size == 4586


def test_options_reach_the_factory_and_beat_the_data():
    network = build("ul-mobilenet", {"channels": [4, 6, 8], "classes": 5}, classes=10)
    assert network.channels == (4, 6, 8)
    assert network(torch.zeros(1, 1, 8, 8)).shape == (1, 5)


def test_weights_are_a_function_of_the_seed():
    one, same, other = (flatten(build("ul-mobilenet", {}, seed=seed)) for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("factory", ["Own", "adapted", "scaled"])
def test_an_own_network_is_built_by_its_path(factory):
    network = build(f"own_networks_for_tests:{factory}", {}, classes=4)
    for width in (0.5, 1.0):
        with at_width(width):
            assert network(torch.zeros(2, 1, 9, 9)).shape == (2, 4)
    assert (segments(network, (0.5, 1.0)).sizes > 0).all()


def test_an_own_network_takes_options():
    network = build("own_networks_for_tests:Own", {"hidden": 12}, classes=4)
    assert network.enter.out_channels == 12


@pytest.mark.parametrize("factory", ["Own", "adapted", "scaled"])
def test_the_weights_of_an_own_network_are_a_function_of_the_seed_too(factory):
    """Two methods under one seed must start from one network, also with a user's own layers."""
    torch.manual_seed(1)
    one = flatten(build(f"own_networks_for_tests:{factory}", {}, seed=3))
    torch.manual_seed(2)
    assert np.array_equal(flatten(build(f"own_networks_for_tests:{factory}", {}, seed=3)), one)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("vgg", "ul-mobilenet"),
        ("no_such_package:factory", "no_such_package"),
        ("own_networks_for_tests:absent", "absent"),
        ("own_networks_for_tests:", "own_networks_for_tests:"),
        (":factory", ":factory"),
        (".relative:factory", ".relative:factory"),
        ("own_networks_for_tests:constant", "constant"),
        ("own_networks_for_tests:number", "int"),
        ("own_networks_for_tests:plain", "slimmable"),
        ("own_networks_for_tests:slimmable", "slimfl.nn.adapt"),  # only passes through there
        ("own_networks_for_tests:SlimLinear", "slimfl.nn.layers"),
        ("own", "network="),
        ("own_networks_for_tests:normed", "BatchNorm"),  # its running statistics do not travel
        ("builtins:dict", "builtins:dict"),
        ("torch.nn:Identity", "slimmable"),
    ],
)
def test_a_model_that_cannot_be_had_is_refused_by_name(name, words):
    with pytest.raises(RequestError) as caught:
        build(name, {})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize(
    "options",
    [
        {"chanels": [4, 4, 8]}, {"channels": 4}, {"channels": [4, 4]}, {"channels": [0, 4, 8]},
        {"channels": [4.5, 4, 8]},
    ],
    ids=str,
)  # fmt: skip
def test_bad_options_are_refused(options):
    with pytest.raises(RequestError, match=r"model\.options"):
        build("ul-mobilenet", options)
