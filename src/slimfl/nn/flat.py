"""A network's parameters as one flat float32 vector, the form in which they are sent.

The radio cuts the vector into segments, the server sums it, checkpoints store it. The order is
that of `named_parameters()`.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from slimfl.errors import RequestError
from slimfl.nn.norms import SlimBatchNorm2d, SlimGroupNorm, statistics
from slimfl.nn.order import ChannelOrder, Vector, permutation
from slimfl.nn.widths import Slimmable

#: So narrow that every axis that can shrink does.
_NARROW = 1e-9


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


def flat_order(network: nn.Module, order: ChannelOrder) -> NDArray[np.int64]:
    """Where each parameter of the reordered network stands in the flat vector.

    `vector[flat_order(...)]` are the parameters of the same function with its channels in the new
    order; `put_back` undoes it.
    """
    together = _grouped(network)
    places: dict[int, NDArray[np.int64]] = {}
    start = 0
    for parameter in network.parameters():
        count = parameter.numel()
        places[id(parameter)] = np.arange(start, start + count).reshape(tuple(parameter.shape))
        start += count
    for module in network.modules():
        if isinstance(module, Slimmable):
            # a group norm has no width narrower than one group
            least_width = 1 / module.num_groups if isinstance(module, SlimGroupNorm) else _NARROW
            narrow = module.active_shapes(least_width)
            for name, parameter in module.named_parameters(recurse=False):
                for axis, (size, least) in enumerate(
                    zip(parameter.shape, narrow[name], strict=True)
                ):
                    if least < size:
                        index = _along(module, axis, size, order, together)
                        places[id(parameter)] = places[id(parameter)].take(index, axis)
    return np.concatenate([places[id(p)].reshape(-1) for p in network.parameters()])


def put_back(values: NDArray[Any], places: NDArray[np.int64]) -> NDArray[Any]:
    """Undo `values[places]`."""
    result = np.empty_like(values)
    result[places] = values
    return result


class FlatOrders:
    """The flat orders of one network, each computed once."""

    def __init__(self, network: nn.Module) -> None:
        self.of = lru_cache(maxsize=64)(lambda order: flat_order(network, order))


def _grouped(network: nn.Module) -> dict[int, int]:
    """By a layer's number of channels: how many of them are normalised together."""
    together: dict[int, int] = {}
    for module in network.modules():
        if isinstance(module, SlimBatchNorm2d):
            raise RequestError(
                "the method trains other channels than the leading ones, and switchable batch "
                "normalisation has statistics of the leading ones alone; use a network with "
                "SlimGroupNorm or without normalisation, or another method"
            )
        if isinstance(module, SlimGroupNorm):
            count = module.num_channels
            together[count] = math.lcm(together.get(count, 1), count // module.num_groups)
    return together


def _along(
    layer: Any, axis: int, size: int, order: ChannelOrder, grouped: dict[int, int]
) -> NDArray[np.int64]:
    """The permutation of one axis; what belongs to one channel, or one group, stays together."""
    together = getattr(layer, "features_per_channel", 1) if axis == 1 else 1
    if blocks := getattr(layer, "blocks", 0):
        together = size // blocks
    together *= grouped.get(size // together, 1)
    channels = permutation(order, size // together)
    index: NDArray[np.int64] = (channels[:, None] * together + np.arange(together)).reshape(-1)
    return index
