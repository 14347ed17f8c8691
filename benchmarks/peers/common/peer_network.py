"""UL-MobileNet at full width and the bench's images in PyTorch, for the peers that use it."""

from collections.abc import Iterable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

MEAN, DEVIATION = 0.286, 0.353
LEARNING_RATE = 1e-3


class Network(nn.Module):
    """Five convolutions of stride 1 with ReLU6, the mean over all pixels, one linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            [
                nn.Conv2d(1, 32, 3, padding=1, bias=False),
                nn.Conv2d(32, 32, 3, padding=1, groups=32, bias=False),
                nn.Conv2d(32, 32, 1, bias=False),
                nn.Conv2d(32, 32, 3, padding=1, groups=32, bias=False),
                nn.Conv2d(32, 64, 1, bias=False),
            ]
        )
        self.head = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of normalised images."""
        for layer in self.layers:
            x = F.relu6(layer(x))
        return self.head(x.mean((2, 3)))


def make_network() -> Network:
    """In the memory order in which PyTorch's convolutions are fastest on a CPU."""
    return Network().to(memory_format=torch.channels_last)


def draw_images(count: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Random uint8 images [N, 1, 28, 28] and labels."""
    random = torch.Generator().manual_seed(seed)
    pixels = torch.randint(0, 256, (count, 28, 28), dtype=torch.uint8, generator=random)
    return pixels[:, None], torch.randint(0, 10, (count,), generator=random)


def normalise(pixels: Tensor) -> Tensor:
    """Floats around zero from bytes, ready for the network."""
    images = pixels.float().div_(255).sub_(MEAN).div_(DEVIATION)
    return images.contiguous(memory_format=torch.channels_last)


def shuffled_batches(
    pixels: Tensor, labels: Tensor, batch_size: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """One epoch in a new order; the last batch may be smaller."""
    order = torch.randperm(len(labels))
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        yield normalise(pixels[batch]), labels[batch]


def train_epoch(network: nn.Module, pixels: Tensor, labels: Tensor, batch_size: int) -> None:
    """One local epoch with a new Adam."""
    adam = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)
    for images, targets in shuffled_batches(pixels, labels, batch_size):
        adam.zero_grad()
        F.cross_entropy(network(images), targets).backward()
        adam.step()


def norm_of(tensors: Iterable[Tensor]) -> float:
    """Euclidean norm of all numbers together."""
    return float(torch.cat([t.detach().flatten() for t in tensors]).norm())
