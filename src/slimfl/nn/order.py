"""A network with its channels in another order: the same function, other leading channels.

A width is always the *leading* share of the channels. A method whose devices train other channels
(a rolling window, a random subset) puts those first, trains a leading width, and puts everything
back. So such a method needs no second kind of sub-network, and every engine can train it.

The order of a layer's channels depends on how many there are and on nothing else, so layers that
are connected (also by a shortcut) agree. Channels that are normalised as one group move as one, or
it would be another function. Inputs of the network and classes stay where they are.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slimfl.errors import RequestError
from slimfl.nn.widths import Slimmable
from slimfl.rng import generator

if TYPE_CHECKING:  # methods name orders and vectors without a network, and start faster
    from torch import nn

#: All parameters of a network, in the order of `named_parameters()`.
Vector = NDArray[np.float32]

#: A rule and a number: `("roll", 3)` or `("shuffle", 17)`.
ChannelOrder = tuple[str, int]

RULES = ("roll", "shuffle")

#: So narrow that every axis that can shrink does.
_NARROW = 1e-9


def permutation(order: ChannelOrder, count: int) -> NDArray[np.int64]:
    """The channels in their new order.

    >>> permutation(("roll", 2), 5).tolist()
    [3, 4, 0, 1, 2]
    """
    rule, number = order
    if rule == "roll":
        return np.roll(np.arange(count), number % count)
    if rule == "shuffle":
        return generator(number, "channel order", count).permutation(count)
    raise ValueError(f"unknown channel order {rule!r}; choose from {', '.join(RULES)}")


def flat_order(network: nn.Module, order: ChannelOrder) -> NDArray[np.int64]:
    """Where each parameter of the reordered network stands in the flat vector.

    `vector[flat_order(...)]` are the parameters of the same function with its channels in the new
    order; `put_back` undoes it.
    """
    from slimfl.nn.norms import SlimGroupNorm

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
    from slimfl.nn.norms import SlimBatchNorm2d, SlimGroupNorm

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
