"""How long one image takes at every width, side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median

import torch

REPEATS = 100
WARM_UP = 10


def latencies_ms(
    calls: Mapping[str, Callable[[], object]],
    repeats: int = REPEATS,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """The median time of each call; they take turns, so that what slows the machine slows all."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    with _one_thread():
        for number in range(WARM_UP + repeats):
            for name, call in calls.items():
                began = clock()
                call()
                if number >= WARM_UP:
                    times[name].append(clock() - began)
    return {name: 1e3 * median(values) for name, values in times.items()}


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
