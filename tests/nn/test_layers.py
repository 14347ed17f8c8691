"""A slice of a wide layer is the same as a narrow layer with copied weights."""

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from slimfl.nn import SlimConv2d, SlimLinear, Slimmable, at_width, average_pool

WIDTHS = st.integers(1, 100).map(lambda n: n / 100)


def copy_leading(small, wide):
    with torch.no_grad():
        for own, whole in zip(small.parameters(), wide.parameters(), strict=True):
            own.copy_(whole[tuple(slice(0, size) for size in own.shape)])
    return small


def same_output_and_gradients(wide, small, x, width):
    """Outputs agree, gradients agree inside the block, and are exactly zero outside of it."""
    one, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    with at_width(width):
        out = wide(one)
    expected = small(other)
    assert out.shape == expected.shape
    torch.testing.assert_close(out, expected)
    toward = torch.randn_like(out)
    (out * toward).sum().backward()
    (expected * toward).sum().backward()
    torch.testing.assert_close(one.grad, other.grad)
    for whole, own in zip(wide.parameters(), small.parameters(), strict=True):
        block = tuple(slice(0, size) for size in own.shape)
        torch.testing.assert_close(whole.grad[block], own.grad)
        outside = whole.grad.clone()
        outside[block] = 0
        assert not outside.any()


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 7), st.integers(1, 7), WIDTHS, st.booleans(), st.booleans(), st.booleans(),
    st.sampled_from([(1, 0, 1), (2, 1, 1), (1, (1, 0), 2), (1, "same", 1)]),
)  # fmt: skip
def test_a_convolution_slices_to_a_small_one(
    share_into, share_out, width, bias, slim_in, slim_out, geometry
):
    stride, padding, dilation = geometry
    into, out = share_into, share_out
    wide = SlimConv2d(
        into, out, 3, stride, padding, dilation, bias=bias, slim_in=slim_in, slim_out=slim_out
    ).double()
    narrow_in = -(-into * round(100 * width) // 100) if slim_in else into
    narrow_out = -(-out * round(100 * width) // 100) if slim_out else out
    small = nn.Conv2d(narrow_in, narrow_out, 3, stride, padding, dilation, bias=bias).double()
    x = torch.randn(2, narrow_in, 9, 8, dtype=torch.float64)
    same_output_and_gradients(wide, copy_leading(small, wide), x, width)


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 9), WIDTHS, st.booleans(), st.booleans())
def test_a_depthwise_convolution_slices_to_a_small_one(channels, width, bias, slim):
    wide = SlimConv2d(
        channels, channels, (3, 2), padding=1, groups=channels, bias=bias,
        slim_in=slim, slim_out=slim,
    ).double()  # fmt: skip
    narrow = -(-channels * round(100 * width) // 100) if slim else channels
    small = nn.Conv2d(narrow, narrow, (3, 2), padding=1, groups=narrow, bias=bias).double()
    x = torch.randn(2, narrow, 6, 5, dtype=torch.float64)
    same_output_and_gradients(wide, copy_leading(small, wide), x, width)


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 9), st.integers(1, 9), st.integers(1, 4), WIDTHS, st.booleans(), st.booleans(),
    st.booleans(),
)  # fmt: skip
def test_a_linear_layer_slices_to_a_small_one(
    channels, out, per_channel, width, bias, slim_in, slim_out
):
    wide = SlimLinear(
        channels * per_channel, out, bias, slim_in, slim_out, features_per_channel=per_channel
    ).double()
    hundredths = round(100 * width)
    narrow_in = -(-channels * hundredths // 100) if slim_in else channels
    narrow_out = -(-out * hundredths // 100) if slim_out else out
    small = nn.Linear(narrow_in * per_channel, narrow_out, bias).double()
    x = torch.randn(3, narrow_in * per_channel, dtype=torch.float64)
    same_output_and_gradients(wide, copy_leading(small, wide), x, width)


def test_the_full_width_is_an_ordinary_layer():
    convolution, linear = SlimConv2d(2, 4, 3), SlimLinear(4, 3)
    x = torch.randn(1, 2, 5, 5)
    expected = F.conv2d(x, convolution.weight, convolution.bias)
    torch.testing.assert_close(convolution(x), expected)
    x = torch.randn(2, 4)
    torch.testing.assert_close(linear(x), x @ linear.weight.T + linear.bias)


def test_layers_start_as_torchs_own_do():
    """Bounds of the uniform distributions that torch documents for both kinds of layer."""
    for layer, fan_in in ((SlimConv2d(8, 64, 3), 72), (SlimLinear(72, 300), 72)):
        bound = fan_in**-0.5
        for parameter in layer.parameters():
            assert parameter.abs().max() <= bound
            assert parameter.abs().max() > 0.9 * bound
            assert abs(parameter.mean()) < 5 * bound / (3 * parameter.numel()) ** 0.5


@pytest.mark.parametrize(
    "arguments",
    [
        {"in_channels": 4, "out_channels": 4, "kernel_size": 3, "groups": 2},
        {"in_channels": 4, "out_channels": 8, "kernel_size": 3, "groups": 4},
        {"in_channels": 4, "out_channels": 4, "kernel_size": 3, "groups": 4, "slim_in": False},
    ],
)
def test_groups_that_cannot_be_sliced_are_refused(arguments):
    with pytest.raises(ValueError, match="convolution"):
        SlimConv2d(**arguments)


def test_features_that_do_not_divide_into_channels_are_refused():
    with pytest.raises(ValueError, match="features_per_channel"):
        SlimLinear(10, 2, features_per_channel=3)


def test_layers_are_slimmable_and_say_so():
    assert isinstance(SlimConv2d(1, 2, 3), Slimmable)
    assert isinstance(SlimLinear(1, 2), Slimmable)
    assert not isinstance(nn.Linear(1, 2), Slimmable)
    assert "depthwise" in repr(SlimConv2d(4, 4, 3, groups=4))
    assert "4, 8" in repr(SlimLinear(4, 8))


def test_average_pool_is_the_mean_and_its_gradient_keeps_the_layout():
    x = torch.rand(3, 4, 5, 6).to(memory_format=torch.channels_last).requires_grad_()
    torch.testing.assert_close(average_pool(x), x.mean((2, 3)))
    weights = torch.rand(3, 4)
    (average_pool(F.relu6(x)) * weights).sum().backward()
    torch.testing.assert_close(x.grad, (weights / 30)[:, :, None, None].expand_as(x))
    assert x.grad.is_contiguous(memory_format=torch.channels_last)


#: oneDNN writes past a buffer in the weight gradient of a strided 1x1 convolution with few input
#: channels in channels-last memory (https://github.com/uxlfoundation/oneDNN/issues/6035).
SHORTCUTS = """
import torch
from slimfl.nn import SlimConv2d, at_width

torch.set_num_threads(1)
torch.manual_seed(0)
for channels, size, batch in ((4, 64, 32), (3, 64, 64), (8, 64, 32)):
    images = torch.randn(batch, size, size, channels).permute(0, 3, 1, 2)
    shortcut = SlimConv2d(channels, 16, 1, stride=2, bias=False, slim_in=False)
    with at_width(0.5):
        out = shortcut(images)
    toward = torch.randn_like(out)
    out.backward(toward)
    naive = torch.einsum("nohw,nihw->oi", toward.double(), images[:, :, ::2, ::2].double())
    torch.testing.assert_close(shortcut.weight.grad[:8, :, 0, 0].double(), naive,
                               rtol=1e-3, atol=1e-3)
print("whole")
"""


@pytest.mark.slow
def test_training_a_strided_shortcut_ends_with_the_right_gradient_and_no_crash():
    ended = subprocess.run(
        [sys.executable, "-c", SHORTCUTS], capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "whole\n"


@pytest.mark.parametrize(
    ("stride", "padding", "size"),
    [(2, 0, 9), (2, 0, 8), ((2, 3), (1, 2), 9), ((1, 2), 1, 7), (3, "valid", 10)],
)
@pytest.mark.parametrize("groups", [1, 4])
def test_it_computes_what_torchs_own_layer_does(stride, padding, size, groups):
    slim = SlimConv2d(4, 4, 1, stride, padding, groups=groups).double()
    plain = nn.Conv2d(4, 4, 1, stride, padding, groups=groups).double()
    plain.load_state_dict(slim.state_dict())
    images = torch.randn(2, 4, size, size, dtype=torch.float64)
    torch.testing.assert_close(slim(images), plain(images))
    with at_width(0.5):
        assert slim(images[:, :2]).shape[1] == 2
