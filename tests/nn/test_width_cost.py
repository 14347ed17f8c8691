"""Parameters, multiply-adds and bits, counted a second time by hand."""

import pytest
from torch import nn

from slimfl.nn import (
    SlimConv2d,
    SlimLinear,
    ULMobileNet,
    active_width,
    cost,
    multiply_adds,
    slimmable,
)
from tests.networks import Scale


def counted_by_hand(channels, rows, columns, into=1, classes=10):
    """Loops over the layers of table I: stride 1, padding 1, one product per tap."""
    first, second, third = channels
    total = 0
    for out, taps in (
        (first, into * 9),
        (first, 9),
        (second, first),
        (second, 9),
        (third, second),
    ):
        for _ in range(rows):
            total += columns * out * taps
    return total + third * classes


@pytest.mark.parametrize(
    ("width", "count", "channels"),
    [
        (1.0, 3_086_464, (32, 32, 64)),
        (0.5, 941_120, (16, 16, 32)),
        (0.25, 320_032, (8, 8, 16)),
    ],
)
def test_ul_mobilenet_on_28_by_28(width, count, channels):
    assert counted_by_hand(channels, 28, 28) == count
    assert multiply_adds(ULMobileNet(), width, (1, 28, 28)) == count


def test_other_images_and_channels():
    network = ULMobileNet(in_channels=3, classes=7, channels=(5, 6, 9))
    expected = counted_by_hand((3, 3, 5), 11, 13, into=3, classes=7)
    assert multiply_adds(network, 0.5, (3, 11, 13)) == expected


def test_strides_and_plain_layers_are_counted_by_the_outputs_they_have():
    network = slimmable(
        nn.Sequential(nn.Conv2d(1, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, 6))
    )
    network.append(nn.Linear(6, 2))
    # 10 x 10 gives 4 x 4 outputs; at 0.5x two channels; the last two layers keep their sizes
    assert multiply_adds(network, 0.5, (1, 10, 10)) == 2 * 16 * 9 + (2 * 16) * 6 + 6 * 2
    assert multiply_adds(network, 1.0, (1, 10, 10)) == 4 * 16 * 9 + (4 * 16) * 6 + 6 * 2


def test_a_layer_that_runs_twice_is_counted_twice():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter = SlimConv2d(1, 4, 1, slim_in=False)
            self.again = SlimConv2d(4, 4, 1)
            self.head = SlimLinear(4, 2, slim_out=False)

        def forward(self, x):
            return self.head(self.again(self.again(self.enter(x))).mean((2, 3)))

    assert multiply_adds(Twice(), 0.5, (1, 3, 3)) == 9 * 2 + 2 * 9 * 4 + 4


def test_an_own_slimmable_layer_without_a_weight_does_not_break_the_count():
    """The protocol asks for `active_shapes` and nothing else."""
    network = nn.Sequential(
        SlimConv2d(1, 4, 3, slim_in=False), Scale(4), SlimConv2d(4, 2, 1, slim_out=False)
    )
    count = multiply_adds(network, 0.5, (1, 5, 5))
    convolutions = 2 * 9 * 9 + 2 * 9 * 2
    assert count in (convolutions, convolutions + 2 * 9)


def test_rows_are_consistent_and_bits_follow_the_parameters():
    rows = cost(ULMobileNet(), (0.25, 0.5, 1.0), (1, 28, 28))
    assert [row.width for row in rows] == [0.25, 0.5, 1.0]
    assert [row.parameters for row in rows] == [578, 1530, 4586]
    assert [row.segment_parameters for row in rows] == [578, 952, 3056]
    assert [row.multiply_adds for row in rows] == [320_032, 941_120, 3_086_464]
    assert [row.bits for row in rows] == [32 * 578, 32 * 1530, 32 * 4586]
    assert [row.segment_bits for row in rows] == [32 * 578, 32 * 952, 32 * 3056]


def test_bits_per_parameter_may_be_less():
    rows = cost(ULMobileNet(), (0.5, 1.0), (1, 28, 28), bits_per_parameter=8)
    assert [row.bits for row in rows] == [12_240, 36_688]


def test_counting_leaves_no_trace():
    network = ULMobileNet()
    multiply_adds(network, 0.5, (1, 28, 28))
    assert active_width() == 1.0
    assert all(parameter.grad is None for parameter in network.parameters())
    assert not any(module._forward_hooks for module in network.modules())
    with pytest.raises(RuntimeError):  # images of the wrong kind
        multiply_adds(network, 0.5, (3, 28, 28))
    assert active_width() == 1.0
    assert not any(module._forward_hooks for module in network.modules())
