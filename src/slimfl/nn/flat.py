"""A network's parameters as one flat float32 vector, the form in which they are sent.

The radio cuts the vector into segments, the server sums it, checkpoints store it. The order is
that of `named_parameters()`.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from slimfl.nn.norms import statistics
from slimfl.nn.order import Vector


def flatten(network: nn.Module) -> Vector:
    """A copy of all parameters in one vector."""
    parts = [p.detach().to("cpu", torch.float32).reshape(-1) for p in network.parameters()]
    return torch.cat(parts).numpy()


def load_flat(network: nn.Module, vector: Vector) -> None:
    """Copy a flat vector into the network."""
    count = sum(parameter.numel() for parameter in network.parameters())
    if vector.shape != (count,):
        raise ValueError(f"the network has {count} parameters, the vector has shape {vector.shape}")
    start = 0
    with torch.no_grad():
        for parameter in network.parameters():
            block = vector[start : start + parameter.numel()].reshape(tuple(parameter.shape))
            parameter.copy_(torch.from_numpy(np.ascontiguousarray(block)))
            start += parameter.numel()


def statistics_positions(network: nn.Module) -> NDArray[np.int64]:
    """Where the flat vector holds what a forward pass measures, which no optimiser may move."""
    kept = {id(parameter) for parameter in statistics(network)}
    marks = [np.full(p.numel(), id(p) in kept) for p in network.parameters()]
    return np.flatnonzero(np.concatenate(marks))


class FlatView:
    """A network whose parameters and gradients are views of two flat tensors.

    So a download, an upload, a reset of the gradients and an optimiser step touch one tensor each,
    whatever the number of layers.
    """

    def __init__(self, network: nn.Module) -> None:
        device = next(network.parameters()).device
        count = sum(p.numel() for p in network.parameters())
        self.values = nn.Parameter(torch.empty(count, device=device))
        self.gradients = torch.zeros(count, device=device)
        self.values.grad = self.gradients
        start = 0
        for parameter in network.parameters():
            block = slice(start, start + parameter.numel())
            self.values.data[block] = parameter.detach().reshape(-1)
            parameter.data = self.values.data[block].view(parameter.shape)
            parameter.grad = self.gradients[block].view(parameter.shape)
            start += parameter.numel()
        measured = statistics_positions(network)
        self._statistics = torch.from_numpy(measured).to(device) if len(measured) else None

    def step(self, optimiser: torch.optim.Optimizer) -> None:
        """An optimiser step that does not change the statistics of the forward pass."""
        if self._statistics is None:
            optimiser.step()
            return
        measured = self.values.data[self._statistics]
        optimiser.step()
        self.values.data[self._statistics] = measured
