"""UL-MobileNet, table I of the paper: 4,586 parameters at 1.0x, 1,530 at 0.5x."""

from collections import OrderedDict

import torch.nn.functional as F
from torch import Tensor, nn

from slimfl.nn.layers import SlimConv2d, SlimLinear, average_pool
from slimfl.nn.widths import channels_at

#: Maximum number of channels per layer, and of classes; three such layers take 128 MB.
MOST = 4096


def checked_channels(
    in_channels: int, classes: int, channels: tuple[int, int, int]
) -> tuple[int, int, int]:
    """The channels after the stem and the two blocks, if all sizes are possible."""
    sizes = (in_channels, classes, *channels)
    if len(sizes) != 5 or not all(type(n) is int and 1 <= n <= MOST for n in sizes):
        raise ValueError(
            f"in_channels, classes and three channels must be whole numbers from 1 to {MOST}"
        )
    return channels


class ULMobileNet(nn.Module):
    """A stem, two depthwise-separable blocks, average pooling and a linear layer; no batch norm.

    Stride 1 and padding 1 throughout. No choice gives table IV's multiply-adds (erratum E5); this
    one is closest to their ratio.

    >>> sum(p.numel() for p in ULMobileNet().parameters())
    4586
    """

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

    def forward(self, images: Tensor) -> Tensor:
        """The logits of images [sample, channel, row, column] at the active width."""
        x = F.relu6(self.stem(images))
        x = F.relu6(self.depthwise1(x))
        x = F.relu6(self.pointwise1(x))
        x = F.relu6(self.depthwise2(x))
        x = F.relu6(self.pointwise2(x))
        logits: Tensor = self.head(average_pool(x))
        return logits

    def plain(self, width: float) -> nn.Sequential:
        """The sub-network of a width in plain torch layers, with the same parameter names."""
        return nn.Sequential(
            OrderedDict[str, nn.Module](
                stem=self.stem.plain(width),
                relu1=nn.ReLU6(),
                depthwise1=self.depthwise1.plain(width),
                relu2=nn.ReLU6(),
                pointwise1=self.pointwise1.plain(width),
                relu3=nn.ReLU6(),
                depthwise2=self.depthwise2.plain(width),
                relu4=nn.ReLU6(),
                pointwise2=self.pointwise2.plain(width),
                relu5=nn.ReLU6(),
                pool=nn.AdaptiveAvgPool2d(1),
                flatten=nn.Flatten(),
                head=self.head.plain(width),
            )
        )
