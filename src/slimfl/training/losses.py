"""The two cross-entropies of equation (1)."""

import torch
import torch.nn.functional as F
from torch import Tensor


def hard_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """F of equation (1): cross-entropy with the ground truth, mean over the batch."""
    return F.cross_entropy(logits, labels)


def soft_loss(logits: Tensor, teacher: Tensor) -> Tensor:
    """F-hat of equation (1): cross-entropy with the softmax of the teacher, which is detached."""
    return F.cross_entropy(logits, torch.softmax(teacher.detach(), dim=1))
