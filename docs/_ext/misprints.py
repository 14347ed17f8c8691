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

from slimfl.training import hard_loss, soft_loss

#: Table I, 1.0x: channels in and out as the weights have them, and the size of the kernel.
TABLE_1 = ((1, 32, 3), (1, 32, 3), (32, 32, 1), (1, 32, 3), (32, 64, 1))
LINEAR = (64, 10)

#: Table III, poor and good, alpha = 0.1, 1, 10: mean and standard deviation of the accuracy in %.
TABLE_3 = {
    "good": {
        "SlimFL-0.5x": ((54, 2.2), (83, 1.0), (85, 1.0)),
        "SlimFL-1.0x": ((59, 2.3), (85, 1.1), (87, 1.1)),
        "Vanilla FL-0.5x": ((45, 5.9), (84, 1.1), (85, 1.0)),
        "Vanilla FL-1.0x": ((69, 5.8), (85, 4.0), (86, 4.3)),
    },
    "poor": {
        "SlimFL-0.5x": ((56, 2.4), (82, 1.7), (85, 1.1)),
        "SlimFL-1.0x": ((65, 2.9), (84, 1.4), (87, 0.9)),
        "Vanilla FL-0.5x": ((39, 8.3), (83, 1.2), (85, 0.9)),
        "Vanilla FL-1.0x": ((55, 9.2), (80, 6.0), (82, 4.7)),
    },
}

#: Table IV, 1.0x and 0.5x.
TABLE_4_MFLOPS = (2.76, 0.79)
TABLE_4_PARAMETERS = (4586, 2293)
TABLE_4_BITS = (172_688, 86_344)
TABLE_4_MILLIWATTS = (132.1, 67.4)

#: Table V: watts a round of one device and run, and MFLOPS of a SlimFL round.
TABLE_5_WATTS, TABLE_5_MFLOPS = 0.1995, 3.56

#: Table VI in MBytes, by channel: SlimFL 0.5x, 1.0x and dropped; Vanilla FL-0.5x; Vanilla FL-1.0x.
TABLE_6 = {
    "good": ((1.96, 198.45, 5.46), (102.21, 0.72), (200.30, 5.56)),
    "poor": ((18.32, 130.10, 57.44), (93.87, 9.06), (144.93, 60.96)),
}

#: Table VII by alpha and channel: SlimFL and Vanilla FL-1.5x, first in W, then in GFLOPS.
TABLE_7 = {
    ("0.1", "good"): ((71.0, 158.8), (1.27, 1.88)),
    ("0.1", "poor"): ((57.3, 196.8), (1.02, 2.41)),
    ("1.0", "good"): ((8.5, 15.8), (0.15, 0.22)),
    ("1.0", "poor"): ((10.4, 36.7), (0.18, 0.51)),
    ("10", "good"): ((3.03, 10.2), (0.05, 0.14)),
    ("10", "poor"): ((3.51, 25.4), (0.06, 0.35)),
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
