"""A slimmable ResNet with group normalisation, for small colour images.

K. He, X. Zhang, S. Ren, J. Sun, "Deep residual learning for image recognition", CVPR 2016, section
4.2: a 3x3 convolution, three stages of residual blocks with 16, 32 and 64 channels of which the
second and third halve the image, average pooling, a linear layer. Three blocks per stage make
ResNet-20. Y. Wu, K. He, "Group normalization", ECCV 2018, in place of batch normalisation: it holds
no statistics, so nothing of it depends on what the radio lost.
"""

from torch import Tensor, nn

from slimfl.nn.layers import SlimConv2d, SlimLinear, average_pool
from slimfl.nn.mobilenets import MOST
from slimfl.nn.norms import SlimGroupNorm

#: Blocks of all stages together: a network of unbounded depth would fill a device's memory.
MOST_BLOCKS = 128


class Block(nn.Module):
    """Two convolutions around which the input passes, by a 1x1 convolution where sizes change."""

    def __init__(self, into: int, out: int, stride: int, groups: int) -> None:
        super().__init__()
        self.conv1 = SlimConv2d(into, out, 3, stride, padding=1, bias=False)
        self.norm1 = SlimGroupNorm(groups, out)
        self.conv2 = SlimConv2d(out, out, 3, padding=1, bias=False)
        self.norm2 = SlimGroupNorm(groups, out)
        self.relu = nn.ReLU()
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or into != out:
            self.shortcut = nn.Sequential(
                SlimConv2d(into, out, 1, stride, bias=False), SlimGroupNorm(groups, out)
            )

    def forward(self, x: Tensor) -> Tensor:
        """The sum of both ways."""
        inner = self.relu(self.norm1(self.conv1(x)))
        result: Tensor = self.relu(self.norm2(self.conv2(inner)) + self.shortcut(x))
        return result


class ResNet(nn.Module):
    """Residual blocks in stages; 8 groups per normalisation, so widths are multiples of 1/8.

    >>> sum(p.numel() for p in ResNet().parameters())
    272474
    """

    def __init__(
        self,
        in_channels: int = 3,
        classes: int = 10,
        channels: tuple[int, ...] = (16, 32, 64),
        blocks: int = 3,
        groups: int = 8,
    ) -> None:
        super().__init__()
        sizes = (in_channels, classes, blocks, groups, *channels)
        if not channels or not all(type(n) is int and 1 <= n <= MOST for n in sizes):
            raise ValueError(
                "in_channels, classes, channels, blocks and groups must be whole numbers from 1 "
                f"to {MOST}"
            )
        if blocks * len(channels) > MOST_BLOCKS:
            raise ValueError(f"all stages together may have at most {MOST_BLOCKS} blocks")
        self.stem = SlimConv2d(in_channels, channels[0], 3, padding=1, bias=False, slim_in=False)
        self.norm = SlimGroupNorm(groups, channels[0])
        self.relu = nn.ReLU()
        layers: list[nn.Module] = []
        into = channels[0]
        for stage, out in enumerate(channels):
            for number in range(blocks):
                layers.append(Block(into, out, 2 if stage and not number else 1, groups))
                into = out
        self.blocks = nn.Sequential(*layers)
        self.head = SlimLinear(into, classes, slim_out=False)

    def forward(self, images: Tensor) -> Tensor:
        """The logits of images [sample, channel, row, column] at the active width."""
        x = self.relu(self.norm(self.stem(images)))
        logits: Tensor = self.head(average_pool(self.blocks(x)))
        return logits
