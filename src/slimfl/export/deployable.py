"""The sub-network of a width, preceded by the normalisation of images."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from slimfl.export.trained import Trained
from slimfl.nn import standalone

#: Images per forward pass in evaluation.
BATCH = 200


class Deployable(nn.Module):
    """Raw bytes in, logits out: (pixels / 255 - mean) / deviation is part of the graph."""

    scale: Tensor
    shift: Tensor

    def __init__(
        self, network: nn.Module, mean: NDArray[np.float32], deviation: NDArray[np.float32]
    ) -> None:
        super().__init__()
        self.network = network
        # one multiplication and one subtraction, rounded as in training
        self.register_buffer("scale", _per_channel(1 / (255 * deviation)), persistent=False)
        self.register_buffer("shift", _per_channel(mean / deviation), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """The logits of images [sample, channel, row, column] as unsigned bytes."""
        logits: Tensor = self.network(images.to(torch.float32) * self.scale - self.shift)
        return logits


def _per_channel(values: NDArray[np.floating]) -> Tensor:
    return torch.from_numpy(values.astype(np.float32)).reshape(-1, 1, 1)


def deployable(trained: Trained, width: float) -> Deployable:
    """The deployable network of a width."""
    mean, deviation = trained.dataset.normalisation(trained.experiment.data.normalise)
    made = Deployable(standalone(trained.network, width), mean, deviation)
    return made.eval().requires_grad_(False)


def channels_first(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Images [sample, row, column, channel] as networks take them."""
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))


@torch.no_grad()
def torch_logits(network: nn.Module, images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The logits of images [sample, channel, row, column], in batches."""
    parts = [
        network(torch.from_numpy(images[start : start + BATCH])).numpy()
        for start in range(0, len(images), BATCH)
    ]
    return np.concatenate(parts)


def accuracy(logits: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
    """The share of images whose largest logit is that of their label."""
    return int((logits.argmax(1) == labels).sum()) / len(labels)
