"""Optimisers on a flat parameter, with a state that can be exported and imported."""

import torch
from torch import nn

from slimfl.experiment import TrainingSection
from slimfl.training.work import OptimiserState


def optimiser(section: TrainingSection, values: nn.Parameter) -> torch.optim.Optimizer:
    """A torch optimiser of one flat parameter."""
    if section.optimiser == "adam":
        return torch.optim.Adam(
            [values],
            lr=section.learning_rate,
            betas=section.betas,
            weight_decay=section.weight_decay,
        )
    return torch.optim.SGD(
        [values],
        lr=section.learning_rate,
        momentum=section.momentum,
        nesterov=section.nesterov,
        weight_decay=section.weight_decay,
    )


def export_state(optim: torch.optim.Optimizer, values: nn.Parameter) -> OptimiserState:
    """A copy of the optimiser's state; empty before the first step."""
    return {
        name: value.detach().to("cpu", copy=True).numpy()
        for name, value in optim.state[values].items()
        if isinstance(value, torch.Tensor)
    }


def import_state(
    optim: torch.optim.Optimizer, values: nn.Parameter, state: OptimiserState | None
) -> None:
    """Replace the optimiser's state.

    Args:
        optim: Made by `optimiser`.
        values: Its only parameter.
        state: What `export_state` returned; None or an empty one means a fresh start.
    """
    optim.state.clear()
    if state:
        optim.state[values] = {
            # Adam's step count stays on the CPU whatever the device
            name: torch.tensor(value, device="cpu" if name == "step" else values.device)
            for name, value in state.items()
        }
