"""Narrow base networks in one network that share nothing, as in Split-Mix.

A layer contains the weights of all bases, one block after the other, so a leading share of its rows
is a number of complete bases. At test time a width of b/B is the mean of the logits of the first b
bases; in training it is only base b, because every base learns from its own loss.
"""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from slimfl.nn.layers import average_pool
from slimfl.nn.widths import active_width, channels_at


class BlockConv2d(nn.Module):
    """A convolution of every base: the rows of `weight` are one block per base."""

    def __init__(
        self, blocks: int, into: int, out: int, kernel: int, *, shared_input: bool, depthwise: bool
    ) -> None:
        super().__init__()
        self.blocks, self.out = blocks, out
        self.shared_input, self.depthwise = shared_input, depthwise
        self.weight = nn.Parameter(
            torch.empty(blocks * out, 1 if depthwise else into, kernel, kernel)
        )
        fan_in = self.weight[0].numel()
        nn.init.normal_(self.weight, 0.0, (2 / fan_in) ** 0.5)

    def active_shapes(self, width: float) -> Mapping[str, tuple[int, ...]]:
        """Whole blocks."""
        rows = channels_at(self.blocks, width) * self.out
        return {"weight": (rows, *self.weight.shape[1:])}

    def forward(self, x: Tensor) -> Tensor:
        """The active blocks, each on its own input."""
        first, last = active_blocks(self.blocks, self.training)
        weight = self.weight[first * self.out : last * self.out]
        count = len(weight) if self.depthwise else 1 if self.shared_input else last - first
        return F.conv2d(x, weight, padding=weight.shape[-1] // 2, groups=count)


class BlockLinear(nn.Module):
    """The classifier of every base; returns the mean of the active bases' logits."""

    def __init__(self, blocks: int, into: int, classes: int) -> None:
        super().__init__()
        self.blocks, self.into, self.classes = blocks, into, classes
        self.weight = nn.Parameter(torch.empty(blocks * classes, into))
        self.bias = nn.Parameter(torch.zeros(blocks * classes))
        nn.init.normal_(self.weight, 0.0, (2 / into) ** 0.5)

    def active_shapes(self, width: float) -> Mapping[str, tuple[int, ...]]:
        """Whole blocks."""
        rows = channels_at(self.blocks, width) * self.classes
        return {"weight": (rows, self.into), "bias": (rows,)}

    def forward(self, x: Tensor) -> Tensor:
        """[sample, active bases x into] to [sample, class]."""
        first, last = active_blocks(self.blocks, self.training)
        rows = slice(first * self.classes, last * self.classes)
        weight = self.weight[rows].reshape(last - first, self.classes, self.into)
        each = torch.einsum("sbi,bci->sbc", x.reshape(len(x), last - first, self.into), weight)
        logits: Tensor = (each + self.bias[rows].reshape(last - first, self.classes)).mean(1)
        return logits


def active_blocks(blocks: int, training: bool) -> tuple[int, int]:
    """The first base of the active width, and the one after the last."""
    count = channels_at(blocks, active_width())
    return (count - 1 if training else 0), count


class SplitMixMobileNet(nn.Module):
    """Narrow UL-MobileNets, each with `1/bases` of the channels and its own head."""

    lighter_in_training = True  # one base at a time

    def __init__(
        self,
        in_channels: int = 1,
        classes: int = 10,
        channels: tuple[int, int, int] = (32, 32, 64),
        bases: int = 2,
    ) -> None:
        super().__init__()
        if bases < 1:
            raise ValueError("bases must be at least 1")
        first, second, third = (channels_at(total, 1 / bases) for total in channels)

        def layer(into: int, out: int, kernel: int, kind: str = "") -> BlockConv2d:
            return BlockConv2d(
                bases, into, out, kernel, shared_input=kind == "stem", depthwise=kind == "depthwise"
            )

        self.stem = layer(in_channels, first, 3, "stem")
        self.depthwise1 = layer(first, first, 3, "depthwise")
        self.pointwise1 = layer(first, second, 1)
        self.depthwise2 = layer(second, second, 3, "depthwise")
        self.pointwise2 = layer(second, third, 1)
        self.head = BlockLinear(bases, third, classes)

    def forward(self, images: Tensor) -> Tensor:
        """The logits of the active bases."""
        x = F.relu6(self.stem(images))
        x = F.relu6(self.depthwise1(x))
        x = F.relu6(self.pointwise1(x))
        x = F.relu6(self.depthwise2(x))
        x = F.relu6(self.pointwise2(x))
        logits: Tensor = self.head(average_pool(x))
        return logits
