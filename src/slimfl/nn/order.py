"""A network with its channels in another order: the same function, other leading channels.

A width is always the *leading* share of the channels. A method whose devices train other channels
(a rolling window, a random subset) puts those first, trains a leading width, and puts everything
back. So such a method needs no second kind of sub-network, and every engine can train it.

The order of a layer's channels depends on how many there are and on nothing else, so layers that
are connected (also by a shortcut) agree. Channels that are normalised as one group move as one, or
it would be another function. Inputs of the network and classes stay where they are.
"""

import numpy as np
from numpy.typing import NDArray

from slimfl.rng import generator

#: All parameters of a network, in the order of `named_parameters()`.
Vector = NDArray[np.float32]

#: A rule and a number: `("roll", 3)` or `("shuffle", 17)`.
ChannelOrder = tuple[str, int]

RULES = ("roll", "shuffle")


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
