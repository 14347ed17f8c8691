"""US-MobileNet: UL-MobileNet's ancestor, with switchable batch normalisation.

J. Yu, L. Yang, N. Xu, J. Yang, T. Huang, "Slimmable neural networks", ICLR 2019: every width has
scale, shift and statistics of its own after each convolution. The paper leaves them out to get
UL-MobileNet; here they are, for the comparison.

What a width has of its own belongs to its segment, statistics included: they are sent, lost and
averaged like weights. So where the last segment of a device is lost, the full width's statistics
stay those of an earlier round while the shared weights of segment 1 move on without them.
"""

from collections import OrderedDict

from torch import Tensor, nn

from slimfl.experiment.sections.model import MOST_WIDTHS
from slimfl.nn.layers import SlimConv2d, SlimLinear, average_pool
from slimfl.nn.norms import SlimBatchNorm2d
from slimfl.nn.ul_mobilenet import checked_channels


class USMobileNet(nn.Module):
    """UL-MobileNet with a `SlimBatchNorm2d` after every convolution.

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
