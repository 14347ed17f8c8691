"""UL-MobileNet in bare PyTorch without this package: the reference for the engines.

The plain loop is that of a tutorial: one process, all cores, `channels_last`. The best bare loop is
the same on one core with glibc's allocator tuned, in one process for each core, and with average
pooling written as a sum, whose gradient keeps the layout of the activations.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class BareNetwork(nn.Module):
    """Table I with ordinary layers; the narrow width slices their weights."""

    def __init__(self, tuned: bool = False) -> None:
        super().__init__()
        self.tuned = tuned
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

    def forward(self, x: Tensor, half: bool = False) -> Tensor:
        """Logits of the full or the half network."""
        for layer in self.layers:
            assert isinstance(layer, nn.Conv2d)
            weight, groups = layer.weight, layer.groups
            if half:
                weight = weight[: weight.shape[0] // 2]
                if groups > 1:
                    groups //= 2
                elif weight.shape[1] > 1:
                    weight = weight[:, : weight.shape[1] // 2]
            x = F.relu6(F.conv2d(x, weight, padding=layer.padding, groups=groups))
        x = x.sum((2, 3)) / (x.shape[2] * x.shape[3]) if self.tuned else x.mean((2, 3))
        if half:
            return F.linear(x, self.head.weight[:, :32], self.head.bias)
        logits: Tensor = self.head(x)
        return logits


class BareLoop:
    """Devices one after the other, each with its own Adam moments."""

    def __init__(
        self,
        kind: str,
        devices: int,
        images_per_device: int,
        batch_size: int,
        tuned: bool = False,
    ) -> None:
        self.kind, self.batch_size = kind, batch_size
        count = devices * images_per_device
        self.pixels = torch.randint(0, 256, (count, 1, 28, 28), dtype=torch.uint8)
        self.labels = torch.randint(0, 10, (count,))
        self.owned = torch.arange(count).view(devices, images_per_device)
        self.networks = [
            BareNetwork(tuned).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            for _ in range(devices)
        ]
        self.optimisers = [torch.optim.Adam(n.parameters(), lr=1e-3) for n in self.networks]

    def round(self) -> None:
        """One local epoch on every device."""
        for network, adam, owned in zip(self.networks, self.optimisers, self.owned, strict=True):
            order = owned[torch.randperm(len(owned))]
            for start in range(0, len(order), self.batch_size):
                batch = order[start : start + self.batch_size]
                images = self.pixels[batch].float().div_(255).sub_(0.286).div_(0.353)
                images = images.contiguous(memory_format=torch.channels_last)
                labels = self.labels[batch]
                full = network(images)
                loss = F.cross_entropy(full, labels)
                if self.kind == "sustrain":
                    teacher = full.detach().softmax(1)
                    loss = 0.5 * loss + 0.5 * F.cross_entropy(network(images, half=True), teacher)
                adam.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                adam.step()
