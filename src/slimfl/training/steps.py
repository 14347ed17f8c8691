"""Local steps: how one batch trains a network of several widths.

Each step reads like its pseudo-code. It is given

* `forward(i)`: the logits of width i (0 is the narrowest, -1 the full one),
* `widths`: the widths that take part in this step, ascending,
* `weights`: the weight of every width's loss,
* `update(loss)`: one backward pass and one optimiser step,

and returns the unweighted loss of each width in `widths`.
"""

import json
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from slimfl.errors import RequestError
from slimfl.experiment import TrainingSection
from slimfl.experiment.naming import NO_OPTIONS, Options, construct, resolve

Forward = Callable[[int], Tensor]
UpdateStep = Callable[[Tensor], None]
Widths = Sequence[int]
Weights = Sequence[float]
Step = Callable[[Forward, Tensor, Widths, Weights, UpdateStep], list[Tensor]]


def hard_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """F of equation (1): cross-entropy with the ground truth, mean over the batch."""
    return F.cross_entropy(logits, labels)


def soft_loss(logits: Tensor, teacher: Tensor) -> Tensor:
    """F-hat of equation (1): cross-entropy with the softmax of the teacher, which is detached."""
    return F.cross_entropy(logits, torch.softmax(teacher.detach(), dim=1))


def sustrain(
    forward: Forward, labels: Tensor, widths: Widths, weights: Weights, update: UpdateStep
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
    forward: Forward, labels: Tensor, widths: Widths, weights: Weights, update: UpdateStep
) -> list[Tensor]:
    """Slimmable networks: labels at every width, widest first, one optimiser step each."""
    losses = []
    for i in reversed(widths):
        losses.append(hard_loss(forward(i), labels))
        update(weights[i] * losses[-1])
    return losses[::-1]


def slimtrain_accumulate(
    forward: Forward, labels: Tensor, widths: Widths, weights: Weights, update: UpdateStep
) -> list[Tensor]:
    """Slimmable networks as in the paper's appendix: gradients add up, one optimiser step."""
    losses = [hard_loss(forward(i), labels) for i in widths]
    update(_weighted(losses, widths, weights))
    return losses


def ustrain(
    forward: Forward, labels: Tensor, widths: Widths, weights: Weights, update: UpdateStep
) -> list[Tensor]:
    """Universally slimmable training as in the paper's text (E13).

    Students train after the teacher's update, on its logits from before the update.
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
    forward: Forward, labels: Tensor, widths: Widths, weights: Weights, update: UpdateStep
) -> list[Tensor]:
    """Plain training of a single width on labels."""
    loss = hard_loss(forward(widths[-1]), labels)
    update(loss)
    return [loss]


def _weighted(losses: list[Tensor], widths: Sequence[int], weights: Sequence[float]) -> Tensor:
    return torch.stack([weights[i] * loss for i, loss in zip(widths, losses, strict=True)]).sum()


#: The built-in steps. Accumulated USTrain has no inner step, so it is SUSTrain (E13).
STEPS: dict[str, Step] = {
    "sustrain": sustrain,
    "slimtrain": slimtrain,
    "slimtrain-accumulate": slimtrain_accumulate,
    "ustrain": ustrain,
    "ustrain-accumulate": sustrain,
    "one-width": one_width,
}


def configured_step(section: TrainingSection) -> str:
    """The name of the local step for devices that train several widths."""
    accumulated = f"{section.algorithm}-accumulate"
    if section.order == "accumulate" and accumulated in STEPS:
        return accumulated
    return section.algorithm


def step(name: str, options: Options = NO_OPTIONS) -> Step:
    """The step of that name: a built-in one, or `package.module:Name` of a trusted module.

    A class is instantiated with the options. A function is the step itself and gets the options as
    keyword arguments.
    """
    return _made(name, resolve("local step", name, STEPS, lambda made: callable(made)), options)


@lru_cache(maxsize=64)
def _made(name: str, found: Callable[..., Any], options: Options) -> Step:
    given = json.loads(options)
    if isinstance(found, type):
        made: Step = construct("local step", name, found, given, key="training.options")
        return made
    return partial(found, **given) if given else found


def check_losses(name: str, losses: Sequence[Tensor], widths: Sequence[int]) -> None:
    """Refuse a step that does not return one loss per width.

    Args:
        name: Of the step.
        losses: What it returned.
        widths: Those that took part.
    """
    if len(losses) != len(widths):
        raise RequestError(
            f"the local step {name!r} returned {len(losses)} losses for {len(widths)} widths: "
            "return one per width"
        )
