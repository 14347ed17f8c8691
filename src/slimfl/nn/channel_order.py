"""Other orders of a layer's channels, by a rule and a number."""

import numpy as np
from numpy.typing import NDArray

from slimfl.rng import generator

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
