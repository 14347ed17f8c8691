"""How one batch trains a network of several widths.

Each algorithm reads like its pseudo-code. It is given

* `forward(i)`: the logits of width i (0 is the narrowest, -1 the full one),
* `widths`: the widths that take part in this step, ascending,
* `weights`: the weight of every width's loss,
* `update(loss)`: one backward pass and one optimiser step,

and returns the unweighted loss of each width in `widths`.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from slimfl.training.losses import hard_loss, soft_loss

Forward = Callable[[int], Tensor]
Update = Callable[[Tensor], None]
Algorithm = Callable[[Forward, Tensor, Sequence[int], Sequence[float], Update], list[Tensor]]


def sustrain(
    forward: Forward,
    labels: Tensor,
    widths: Sequence[int],
    weights: Sequence[float],
    update: Update,
) -> list[Tensor]:
    """Superposition training, equation (1): all losses first, then one step on their sum.

    Erratum E11: the paper's algorithm 1 calls backward twice, which would count the full width's
    loss twice.
    """
    *narrower, full = widths
    teacher = forward(full)
    losses = [soft_loss(forward(i), teacher) for i in narrower] + [hard_loss(teacher, labels)]
    update(_weighted(losses, widths, weights))
    return losses


def slimtrain(
    forward: Forward,
    labels: Tensor,
    widths: Sequence[int],
    weights: Sequence[float],
    update: Update,
) -> list[Tensor]:
    """Slimmable networks: labels at every width, widest first, one optimiser step each."""
    losses = []
    for i in reversed(widths):
        losses.append(hard_loss(forward(i), labels))
        update(weights[i] * losses[-1])
    return losses[::-1]


def slimtrain_accumulate(
    forward: Forward,
    labels: Tensor,
    widths: Sequence[int],
    weights: Sequence[float],
    update: Update,
) -> list[Tensor]:
    """Slimmable networks as in the paper's appendix: gradients add up, one optimiser step."""
    losses = [hard_loss(forward(i), labels) for i in widths]
    update(_weighted(losses, widths, weights))
    return losses


def ustrain(
    forward: Forward,
    labels: Tensor,
    widths: Sequence[int],
    weights: Sequence[float],
    update: Update,
) -> list[Tensor]:
    """Universally slimmable training as the paper's text has it (E13).

    Students come after the teacher's update and learn from its logits from before.
    """
    *narrower, full = widths
    teacher = forward(full)
    losses = [hard_loss(teacher, labels)]
    update(weights[full] * losses[0])
    for i in reversed(narrower):
        losses.append(soft_loss(forward(i), teacher))
        update(weights[i] * losses[-1])
    return losses[::-1]


def one_width(
    forward: Forward,
    labels: Tensor,
    widths: Sequence[int],
    weights: Sequence[float],
    update: Update,
) -> list[Tensor]:
    """Plain training of a single width on labels."""
    loss = hard_loss(forward(widths[-1]), labels)
    update(loss)
    return [loss]


def _weighted(losses: list[Tensor], widths: Sequence[int], weights: Sequence[float]) -> Tensor:
    return torch.stack([weights[i] * loss for i, loss in zip(widths, losses, strict=True)]).sum()


#: By (algorithm, order). Accumulated USTrain has no inner step, so it is SUSTrain (E13).
ALGORITHMS: dict[tuple[str, str], Algorithm] = {
    ("sustrain", "sequential"): sustrain,
    ("sustrain", "accumulate"): sustrain,
    ("slimtrain", "sequential"): slimtrain,
    ("slimtrain", "accumulate"): slimtrain_accumulate,
    ("ustrain", "sequential"): ustrain,
    ("ustrain", "accumulate"): sustrain,
    ("one-width", "sequential"): one_width,
    ("one-width", "accumulate"): one_width,
}
