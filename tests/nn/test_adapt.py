"""A plain sequential network made slimmable."""

import pytest
import torch
from torch import nn

from slimfl.errors import RequestError
from slimfl.nn import SlimConv2d, SlimLinear, at_width, flatten, segments, slimmable


def convolutional(pooled):
    """Conv, depthwise, pointwise, flatten to several features a channel, two linear layers."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 6, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(6, 6, 3, padding=1, groups=6, bias=False),
        nn.Sequential(nn.Conv2d(6, 8, 1), nn.ELU(), nn.MaxPool2d(2)),
        nn.AdaptiveAvgPool2d(pooled),
        nn.Flatten(),
        nn.Dropout(0.0),
        nn.Linear(8 * pooled**2, 10),
        nn.Tanh(),
        nn.Linear(10, 3, bias=False),
    ).double()


def narrowed(pooled, width):
    """The same network at a width, made by hand: inner sizes are rounded up."""

    def narrow(total):
        return -(-total * round(100 * width) // 100)

    return nn.Sequential(
        nn.Conv2d(2, narrow(6), 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(narrow(6), narrow(6), 3, padding=1, groups=narrow(6), bias=False),
        nn.Sequential(nn.Conv2d(narrow(6), narrow(8), 1), nn.ELU(), nn.MaxPool2d(2)),
        nn.AdaptiveAvgPool2d(pooled),
        nn.Flatten(),
        nn.Dropout(0.0),
        nn.Linear(narrow(8) * pooled**2, narrow(10)),
        nn.Tanh(),
        nn.Linear(narrow(10), 3, bias=False),
    ).double()


def copied(small, wide):
    with torch.no_grad():
        for own, whole in zip(small.parameters(), wide.parameters(), strict=True):
            own.copy_(whole[tuple(slice(0, size) for size in own.shape)])
    return small


@pytest.mark.parametrize("pooled", [1, 2])
def test_the_full_width_computes_the_same(pooled):
    original = convolutional(pooled)
    images = torch.randn(3, 2, 12, 12, dtype=torch.float64)
    expected = original(images)
    torch.testing.assert_close(slimmable(original).double()(images), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("width", [0.25, 0.5, 0.7])
@pytest.mark.parametrize("pooled", [1, 2])
def test_a_narrow_width_is_the_small_network_also_after_a_flatten(pooled, width):
    adapted = slimmable(convolutional(pooled)).double()
    small = copied(narrowed(pooled, width), adapted)
    images = torch.randn(3, 2, 12, 12, dtype=torch.float64)
    with at_width(width):
        torch.testing.assert_close(adapted(images), small(images))
    assert segments(adapted, (width, 1.0)).sizes[0] == flatten(small).size


def test_the_original_is_left_alone_and_the_copy_shares_no_weights():
    original = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    before = flatten(original)
    adapted = slimmable(original)
    with torch.no_grad():
        for parameter in adapted.parameters():
            parameter.fill_(7)
    assert (flatten(original) == before).all()
    assert type(original[0]) is nn.Linear


def test_inputs_and_classes_are_never_slimmed():
    adapted = slimmable(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 6)))
    assert adapted[0].active_shapes(0.5) == {"weight": (4, 4), "bias": (4,)}
    assert adapted[2].active_shapes(0.5) == {"weight": (6, 4), "bias": (6,)}


def test_a_single_layer_stays_whole_at_every_width():
    adapted = slimmable(nn.Sequential(nn.Flatten(), nn.Linear(4, 3)))
    x = torch.randn(2, 4)
    with at_width(0.5):
        narrow = adapted(x)
    assert torch.equal(narrow, adapted(x))


def test_stride_dilation_and_named_padding_survive():
    original = nn.Sequential(
        nn.Conv2d(1, 4, (3, 5), stride=(2, 1), padding=(1, 2)),
        nn.Conv2d(4, 4, 3, dilation=2, padding="same"),
        nn.Conv2d(4, 2, 3, padding="valid"),
    )
    images = torch.randn(2, 1, 16, 16)
    torch.testing.assert_close(slimmable(original)(images), original(images))


@pytest.mark.parametrize(
    "layers",
    [
        (nn.Conv2d(4, 4, 3, groups=4), nn.Conv2d(4, 8, 1), nn.Conv2d(8, 2, 1)),
        (nn.Conv2d(1, 4, 1), nn.Conv2d(4, 8, 1), nn.Conv2d(8, 8, 3, groups=8)),
    ],
    ids=["first", "last"],
)
def test_a_depthwise_layer_at_either_end_is_adapted_or_refused(layers):
    """It cannot slim its inputs without its outputs; its neighbour must be told."""
    original = nn.Sequential(*layers)
    images = torch.randn(1, layers[0].in_channels, 6, 6)
    try:
        adapted = slimmable(original)
    except RequestError:
        return
    assert adapted(images).shape == original(images).shape
    with at_width(0.5):
        assert adapted(images).shape == original(images).shape


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        ((nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 2, 1)), "BatchNorm2d"),
        ((nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2)), "LayerNorm"),
        ((nn.Linear(4, 4), nn.PReLU(4), nn.Linear(4, 2)), "PReLU"),
        ((nn.Embedding(4, 4), nn.Linear(4, 2)), "Embedding"),
        ((nn.Conv1d(1, 4, 3), nn.Linear(4, 2)), "Conv1d"),
        ((nn.Linear(4, 4), nn.Softmax(dim=1), nn.Linear(4, 2)), "Softmax"),
        ((nn.Conv2d(1, 8, 1), nn.Conv2d(8, 8, 3, groups=2), nn.Conv2d(8, 2, 1)), "groups"),
        ((nn.Conv2d(1, 8, 1), nn.Conv2d(8, 16, 3, groups=8), nn.Conv2d(16, 2, 1)), "groups"),
        ((nn.Conv2d(1, 8, 3, padding=1, padding_mode="reflect"),), "pad"),
        ((nn.ReLU(),), "Conv2d"),
        ((), "Conv2d"),
    ],
)
def test_what_has_no_slimmable_form_is_refused_by_name(layers, words):
    with pytest.raises(RequestError, match=words):
        slimmable(nn.Sequential(*layers))


def test_a_network_that_is_not_sequential_is_refused():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

    with pytest.raises(RequestError, match="equential"):
        slimmable(Own())


def test_nested_sequences_become_flat_slimmable_layers():
    adapted = slimmable(
        nn.Sequential(nn.Sequential(nn.Conv2d(1, 4, 3)), nn.Flatten(), nn.Linear(36, 2))
    )
    assert [type(layer) for layer in adapted] == [SlimConv2d, nn.Flatten, SlimLinear]
    assert adapted[2].features_per_channel == 9


TIED = nn.Linear(6, 6)
FROZEN = nn.Linear(6, 6).requires_grad_(False)
SHARED = nn.Linear(6, 6)
SHARED.weight = TIED.weight
STATISTICS = nn.BatchNorm2d(8, track_running_stats=False)


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        ((nn.Linear(4, 6), TIED, nn.ReLU(), TIED, nn.Linear(6, 2)), "layers 1 and 3 share"),
        ((nn.Linear(4, 6), TIED, SHARED, nn.Linear(6, 2)), "layers 1 and 2 share their weight"),
        ((nn.Linear(4, 6), FROZEN, nn.Linear(6, 2)), "weight of layer 1 is frozen"),
        ((nn.Conv2d(1, 8, 3), STATISTICS, nn.Conv2d(8, 2, 1)), "no running statistics"),
        (
            (nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8, affine=False), nn.Conv2d(8, 2, 1)),
            "use affine=True",
        ),
        (
            (nn.Conv2d(1, 8, 3), nn.GroupNorm(4, 8, affine=False), nn.Conv2d(8, 2, 1)),
            "use affine=True",
        ),
        ((nn.BatchNorm2d(3), nn.Conv2d(3, 8, 3), nn.Conv2d(8, 2, 1)), "normalises the image"),
        ((nn.GroupNorm(1, 3), nn.Conv2d(3, 8, 3), nn.Conv2d(8, 2, 1)), "normalises the image"),
        ((nn.Conv2d(1, 8, 3), nn.Conv2d(8, 10, 1), nn.BatchNorm2d(10)), "outputs of the last"),
        ((nn.Conv2d(1, 8, 3), nn.Conv2d(8, 10, 1), nn.GroupNorm(2, 10)), "outputs of the last"),
        ((nn.Conv2d(1, 8, 3), nn.Flatten(start_dim=2), nn.Linear(9, 4)), "nn.Flatten"),
        ((nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Linear(8, 4)), "nn.Flatten"),
        ((nn.Conv2d(1, 8, 3), nn.Flatten(), nn.Linear(9, 4)), "nn.Flatten"),
        ((nn.Linear(8, 8), nn.Conv2d(1, 4, 1), nn.Conv2d(4, 2, 1)), "convolutions first"),
    ],
)
def test_what_would_change_silently_or_fail_when_narrow_is_refused(layers, words):
    with pytest.raises(RequestError, match=words) as caught:
        slimmable(nn.Sequential(*layers), widths=(0.5, 1.0))
    assert "\n" not in str(caught.value)


def test_layers_without_parameters_are_copied():
    original = nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.5), nn.Linear(6, 2))
    adapted = slimmable(original)
    adapted.eval()
    assert original[1].training
    assert adapted[1] is not original[1]
    relu = nn.ReLU()  # one object in two places is no tied layer
    twice = nn.Sequential(nn.Linear(4, 6), relu, nn.Linear(6, 6), relu, nn.Linear(6, 2))
    assert len(slimmable(twice)) == 5
