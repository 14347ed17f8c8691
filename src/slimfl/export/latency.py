"""The latency of one image at every width, measured in turns."""

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
    """The median time of each call; calls take turns, so that a busy machine slows all of them."""
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
