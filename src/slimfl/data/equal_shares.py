"""Equal shares for devices that each want their own class mix, from a limited stock.

All devices ask for their mix at once. A class with too few samples is handed out in a random order,
drawn per class; devices that get less ask again, in the same proportions, for the remaining
classes. So no device is last because of its number, and the mixes change no more than the stock
demands.
"""

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


def equal_shares(mixes: Floats, stock: Counts, each: int, random: np.random.Generator) -> Counts:
    """A table [device, class] of counts whose rows sum to `each` and whose columns fit the stock.

    `mixes` [device, class] has the proportions that every device wants; `stock` says how many of
    every class there are, enough for all devices together.
    """
    shares = np.zeros(mixes.shape, np.int64)
    left = stock.astype(np.int64)
    while (missing := each - shares.sum(axis=1)).any():
        # terminates: either all devices get what they ask for, or a class runs out
        asked = _apportion(missing, _wanted(mixes, left))
        for label in range(len(stock)):
            order = random.permutation(len(mixes))
            queue = asked[order, label]
            before = np.cumsum(queue) - queue
            granted = np.clip(left[label] - before, 0, queue)
            shares[order, label] += granted
            left[label] -= granted.sum()
    return shares


def _wanted(mixes: Floats, left: Counts) -> Floats:
    """The mixes without the classes that have run out, as proportions."""
    wanted = np.where(left > 0, mixes, 0.0)
    total = wanted.sum(axis=1, keepdims=True)
    # a device that wants none of the remaining classes gets them evenly
    return np.where(total > 0, wanted / np.where(total > 0, total, 1.0), left / left.sum())


def _apportion(seats: Counts, proportions: Floats) -> Counts:
    """Integers in the given proportions; row k sums to `seats[k]` (largest remainders)."""
    exact = seats[:, None] * proportions
    whole = np.floor(exact).astype(np.int64)
    rank = np.argsort(np.argsort(whole - exact, axis=1, kind="stable"), axis=1)
    rounded_up = rank < (seats - whole.sum(axis=1))[:, None]
    return np.asarray(whole + rounded_up)
