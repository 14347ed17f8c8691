"""A slimmable multi-layer perceptron: the smallest network for trying a method."""

from itertools import pairwise

from torch import Tensor, nn

from slimfl.nn.layers import SlimLinear


class MLP(nn.Module):
    """Linear layers with ReLUs between them, on the pixels of an image.

    >>> MLP(features=784, hidden=(8,))(__import__("torch").zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        in_channels: int = 1,
        classes: int = 10,
        features: int | None = None,
        hidden: tuple[int, ...] = (128, 64),
        rows: int = 28,
        columns: int = 28,
    ) -> None:
        super().__init__()
        sizes = [features or in_channels * rows * columns, *hidden]
        layers: list[nn.Module] = []
        for number, (into, out) in enumerate(pairwise(sizes)):
            layers += [SlimLinear(into, out, slim_in=number > 0), nn.ReLU()]
        self.layers = nn.Sequential(*layers)
        self.head = SlimLinear(sizes[-1], classes, slim_in=bool(hidden), slim_out=False)

    def forward(self, images: Tensor) -> Tensor:
        """The logits of images [sample, channel, row, column]."""
        logits: Tensor = self.head(self.layers(images.flatten(1)))
        return logits
