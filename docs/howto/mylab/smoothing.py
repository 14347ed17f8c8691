"""A local step: superposition training on smoothed labels."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from slimfl.training import Forward, UpdateStep, soft_loss


@dataclass(frozen=True)
class SmoothedSuperposition:
    """Like SUSTrain, but the full width learns from smoothed labels."""

    smoothing: float = 0.1

    def __call__(
        self,
        forward: Forward,
        labels: Tensor,
        widths: Sequence[int],
        weights: Sequence[float],
        update: UpdateStep,
    ) -> list[Tensor]:
        """One optimiser step on the weighted sum of all losses."""
        *narrower, widest = widths
        teacher = forward(widest)
        losses = [soft_loss(forward(i), teacher) for i in narrower]
        losses.append(F.cross_entropy(teacher, labels, label_smoothing=self.smoothing))
        update(sum(weights[i] * loss for i, loss in zip(widths, losses, strict=True)))
        return losses
