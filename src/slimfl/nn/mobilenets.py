"""UL-MobileNet (table I of the paper), its ancestor, and the narrow bases of Split-Mix."""

from collections import OrderedDict
from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from slimfl.experiment.sections.learning import MOST_WIDTHS
from slimfl.nn.layers import SlimConv2d, SlimLinear, average_pool
from slimfl.nn.norms import SlimBatchNorm2d
from slimfl.nn.widths import active_width, channels_at

#: Maximum number of channels per layer, and of classes; three such layers take 128 MB.
MOST = 4096


def checked_channels(
    in_channels: int, classes: int, channels: tuple[int, int, int]
) -> tuple[int, int, int]:
    """The channels, if all sizes are possible.

    Args:
        in_channels: Of images.
        classes: Of labels.
        channels: After the stem and each of the two blocks.
    """
    sizes = (in_channels, classes, *channels)
    if len(sizes) != 5 or not all(type(n) is int and 1 <= n <= MOST for n in sizes):
        raise ValueError(
            f"in_channels, classes and three channels must be whole numbers from 1 to {MOST}"
        )
    return channels


class MobileNet(nn.Module):
    """A stem, two depthwise-separable blocks, average pooling and a linear layer; no batch norm."""

    stem: nn.Module
    depthwise1: nn.Module
    pointwise1: nn.Module
    depthwise2: nn.Module
    pointwise2: nn.Module
    head: nn.Module

    def forward(self, images: Tensor) -> Tensor:
        """The logits of images [sample, channel, row, column] at the active width."""
        x = F.relu6(self.stem(images))
        x = F.relu6(self.depthwise1(x))
        x = F.relu6(self.pointwise1(x))
        x = F.relu6(self.depthwise2(x))
        x = F.relu6(self.pointwise2(x))
        logits: Tensor = self.head(average_pool(x))
        return logits


class ULMobileNet(MobileNet):
    """4,586 parameters at 1.0x, 1,530 at 0.5x.

    Stride 1 and padding 1 throughout. No choice gives table IV's multiply-adds (erratum E5); this
    one is closest to their ratio.

    >>> sum(p.numel() for p in ULMobileNet().parameters())
    4586
    """

    head: SlimLinear

    def __init__(
        self,
        in_channels: int = 1,
        classes: int = 10,
        channels: tuple[int, int, int] = (32, 32, 64),
    ) -> None:
        super().__init__()
        first, second, third = checked_channels(in_channels, classes, channels)
        self.in_channels, self.classes, self.channels = in_channels, classes, (first, second, third)
        self.stem = SlimConv2d(in_channels, first, 3, padding=1, bias=False, slim_in=False)
        self.depthwise1 = SlimConv2d(first, first, 3, padding=1, groups=first, bias=False)
        self.pointwise1 = SlimConv2d(first, second, 1, bias=False)
        self.depthwise2 = SlimConv2d(second, second, 3, padding=1, groups=second, bias=False)
        self.pointwise2 = SlimConv2d(second, third, 1, bias=False)
        self.head = SlimLinear(third, classes, slim_out=False)

    def active_channels(self, width: float) -> tuple[int, int, int]:
        """The channels after the stem and the two blocks at a width."""
        first, second, third = (channels_at(total, width) for total in self.channels)
        return first, second, third

    def plain(self, width: float) -> nn.Sequential:
        """The sub-network of a width in plain torch layers, with the same parameter names."""
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        convolutions = ("stem", "depthwise1", "pointwise1", "depthwise2", "pointwise2")
        for number, name in enumerate(convolutions, start=1):
            layers[name] = getattr(self, name).plain(width)
            layers[f"relu{number}"] = nn.ReLU6()
        layers |= {"pool": nn.AdaptiveAvgPool2d(1), "flatten": nn.Flatten()}
        layers["head"] = self.head.plain(width)
        return nn.Sequential(layers)


class USMobileNet(nn.Module):
    """US-MobileNet: UL-MobileNet's ancestor, with a `SlimBatchNorm2d` after every convolution.

    J. Yu, L. Yang, N. Xu, J. Yang, T. Huang, "Slimmable neural networks", ICLR 2019: every width
    has scale, shift and statistics of its own. The paper leaves them out to get UL-MobileNet; here
    they are, for the comparison.

    What a width has of its own belongs to its segment, statistics included: they are sent, lost and
    averaged like weights. So where the last segment of a device is lost, the full width's
    statistics stay those of an earlier round while the shared weights of segment 1 move on without
    them.

    >>> sum(p.numel() for p in USMobileNet().parameters())
    5738
    """

    def __init__(
        self,
        in_channels: int = 1,
        classes: int = 10,
        channels: tuple[int, int, int] = (32, 32, 64),
        widths: tuple[float, ...] = (0.5, 1.0),
    ) -> None:
        super().__init__()
        first, second, third = checked_channels(in_channels, classes, channels)
        if len(widths) > MOST_WIDTHS:
            raise ValueError(f"there may be at most {MOST_WIDTHS} widths")

        def layer(name: str, convolution: SlimConv2d) -> list[tuple[str, nn.Module]]:
            return [
                (name, convolution),
                (f"{name}_norm", SlimBatchNorm2d(convolution.out_channels, widths)),
                (f"{name}_relu", nn.ReLU6()),
            ]

        def depthwise(size: int) -> SlimConv2d:
            return SlimConv2d(size, size, 3, padding=1, groups=size, bias=False)

        stem = SlimConv2d(in_channels, first, 3, padding=1, bias=False, slim_in=False)
        self.features = nn.Sequential(
            OrderedDict(
                [
                    *layer("stem", stem),
                    *layer("depthwise1", depthwise(first)),
                    *layer("pointwise1", SlimConv2d(first, second, 1, bias=False)),
                    *layer("depthwise2", depthwise(second)),
                    *layer("pointwise2", SlimConv2d(second, third, 1, bias=False)),
                ]
            )
        )
        self.head = SlimLinear(third, classes, slim_out=False)

    def forward(self, images: Tensor) -> Tensor:
        """The logits of images [sample, channel, row, column] at the active width."""
        logits: Tensor = self.head(average_pool(self.features(images)))
        return logits


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


class SplitMixMobileNet(MobileNet):
    """Narrow UL-MobileNets, each with `1/bases` of the channels and its own head.

    A layer contains the weights of all bases, one block after the other, so a leading share of its
    rows is a number of complete bases. At test time a width of b/B is the mean of the logits of the
    first b bases; in training it is only base b, because every base learns from its own loss.
    """

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
