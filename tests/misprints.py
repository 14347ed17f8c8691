"""What the paper prints, as numbers and as code: the material of the errata.

Nothing here is used by the package. The page on fidelity and tests/test_errata.py compare it with
what the package does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lab import paper
from slimfl.training import hard_loss, soft_loss

#: Table I, 1.0x: channels in and out as the weights have them, and the size of the kernel.
TABLE_1 = tuple(tuple(f[:3]) for f, _ in paper.printed("table1")["layers"] if len(f) == 4)
LINEAR = tuple(paper.printed("table1")["layers"][-1][0])

_CURVES = {
    "SlimFL-0.5x": "slimfl 0.5x",
    "SlimFL-1.0x": "slimfl 1.0x",
    "Vanilla FL-0.5x": "vanilla-0.5x 0.5x",
    "Vanilla FL-1.0x": "vanilla-1.0x 1.0x",
}
#: Table III, poor and good, alpha = 0.1, 1, 10: mean and standard deviation of the accuracy in %.
TABLE_3 = {
    channel: {
        name: tuple(tuple(paper.table3(channel, alpha)[key]) for alpha in (0.1, 1.0, 10.0))
        for name, key in _CURVES.items()
    }
    for channel in ("good", "poor")
}

#: Table IV, 1.0x and 0.5x.
TABLE_4_MFLOPS, TABLE_4_PARAMETERS, TABLE_4_BITS, TABLE_4_MILLIWATTS = (
    tuple(numbers) for _, _, numbers in paper.printed("table4")["rows"]
)

#: Table V: watts a round of one device and run, and MFLOPS of a SlimFL round.
_POWER, _COMPUTING = (row[2][0] for row in paper.printed("table5")["rows"])
TABLE_5_WATTS, TABLE_5_MFLOPS = _POWER / 1000, _COMPUTING

#: Table VI in MBytes, by channel: SlimFL 0.5x, 1.0x and dropped; Vanilla FL-0.5x; Vanilla FL-1.0x.
TABLE_6 = {
    channel: (
        (row["slimfl 0.5x"], row["slimfl 1.0x"], row["slimfl drop"]),
        (row["vanilla-0.5x"], row["vanilla-0.5x drop"]),
        (row["vanilla-1.0x"], row["vanilla-1.0x drop"]),
    )
    for channel, row in ((c, paper.printed("table6")[c]) for c in ("good", "poor"))
}

#: Table VII by alpha and channel: SlimFL and Vanilla FL-1.5x, first in W, then in GFLOPS.
_WATTS, _GFLOPS = (
    {(channel, alpha): tuple(pair) for channel, alpha, pair in paper.printed("table7")[kind]}
    for kind in ("watts", "gflops")
)
TABLE_7 = {
    (words, channel): (_WATTS[channel, alpha], _GFLOPS[channel, alpha])
    for words, alpha in (("0.1", 0.1), ("1.0", 1.0), ("10", 10.0))
    for channel in ("good", "poor")
}


def frequencies(name: str) -> list[float]:
    """Table VI as shares: of LH, of both segments, of Vanilla FL-0.5x and of Vanilla FL-1.0x.

    A 0.5x entry of SlimFL is one segment of the two that the total counts.
    """
    (half, full, dropped), *vanilla = TABLE_6[name]
    total = half + full + dropped
    both = full / total
    return [both + 2 * half / total, both, *(ok / (ok + lost) for ok, lost in vanilla)]


def printed_split(target: float) -> float:
    """E1: lambda* of proposition 1."""
    return (target + math.sqrt(1 + target) - 1) / target


def first_order_d(share: float, target: float) -> float:
    """E1: (D - 2) P / c of the proof of proposition 1, to first order in c / P."""
    return 1 / (share / target - (1 - share)) + 1 / ((1 - share) / target)


def algorithm_2_sets(
    uniform: NDArray[np.float64], p1: float, p2: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """E2: who is in H and who is in F by lines 15 to 20 of algorithm 2, given g = rand(1)."""
    return (p2 <= uniform) & (uniform < p1), uniform >= p2


def algorithm_2_case_2(updates: Sequence[NDArray[np.float32]], mask: NDArray[np.bool_]) -> Tensor:
    """E3: the mean of LH, and nothing else, as the new global model."""
    return torch.from_numpy(np.mean(updates, axis=0, dtype=np.float32) * mask)


def weight_counts(divisor: int) -> list[int]:
    """E4: the weights of table I's layers with all slimmable channels divided."""
    rows = [
        (into if into == 1 else into // divisor) * (out // divisor) * kernel**2
        for into, out, kernel in TABLE_1
    ]
    return [*rows, LINEAR[0] // divisor * LINEAR[1]]


def multiply_adds(
    divisor: int, strides: Sequence[int], paddings: Sequence[int], size: int = 28
) -> int | None:
    """E5: multiply-adds of table I's layers; None where an image shrinks to nothing."""
    total = 0
    for (_, _, kernel), weights, stride, padding in zip(
        TABLE_1, weight_counts(divisor), strides, paddings, strict=False
    ):
        if size + 2 * padding < kernel:
            return None
        size = (size + 2 * padding - kernel) // stride + 1
        total += size**2 * weights
    return total + weight_counts(divisor)[-1]


def strides_and_paddings() -> Iterator[tuple[int, int]]:
    """E5: 1.0x and 0.5x multiply-adds for strides 1 to 3 and paddings 0 to 2 of all layers."""
    for strides in product((1, 2, 3), repeat=5):
        for paddings in product((0, 1, 2), repeat=5):
            full = multiply_adds(1, strides, paddings)
            half = multiply_adds(2, strides, paddings)
            if full is not None and half is not None:
                yield full, half


def algorithm_1_backward(
    forward: Callable[[int], Tensor], labels: Tensor, weights: Sequence[float]
) -> None:
    """E11: lines 9 to 18 of algorithm 1, line by line, for two widths."""
    logits = forward(1)
    loss = hard_loss(logits, labels)
    loss.backward(retain_graph=True)  # type: ignore[no-untyped-call]
    loss = loss + weights[0] * soft_loss(forward(0), logits)
    loss.backward()  # type: ignore[no-untyped-call]


def appendix_ustrain_backward(forward: Callable[[int], Tensor], labels: Tensor) -> None:
    """E13: the appendix's USTrain up to the optimiser's step, for two widths."""
    logits = forward(1)
    hard_loss(logits, labels).backward()  # type: ignore[no-untyped-call]
    soft_loss(forward(0), logits).backward()  # type: ignore[no-untyped-call]


def minimum_exceeds_average(window: Sequence[float]) -> bool:
    """E10: the first definition of convergence, without its condition on the deviation."""
    return min(window) > math.fsum(window) / len(window)


def vanilla_rounds(watts: float, gflops: float) -> tuple[float, float]:
    """Rounds of Vanilla FL-0.5x and FL-1.0x that cost so much, each run stopping on its own."""
    full, half = TABLE_4_MFLOPS
    together = watts / TABLE_5_WATTS
    narrow = (full * together - 1000 * gflops) / (full - half)
    return narrow, together - narrow
