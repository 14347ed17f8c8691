"""Smaller images: a quarter of the pixels is about a quarter of the cost of training."""

import numpy as np

from slimfl.data.dataset import Samples
from slimfl.errors import RequestError


def downscaled(samples: Samples, factor: int) -> Samples:
    """The mean of every square of `factor` x `factor` pixels, rounded."""
    if factor == 1:
        return samples
    count, rows, columns, channels = samples.images.shape
    if rows % factor or columns % factor:
        raise RequestError(
            f"data.downscale = {factor} does not divide images of {rows} x {columns}; choose a "
            "divisor of both sides"
        )
    small = np.empty((count, rows // factor, columns // factor, channels), np.uint8)
    for start in range(0, count, 1000):  # in pieces: sums take four times the memory
        some = samples.images[start : start + 1000]
        squares = some.reshape(len(some), rows // factor, factor, columns // factor, factor, -1)
        means = squares.mean((2, 4), dtype=np.float32)
        small[start : start + 1000] = np.floor(means + 0.5).astype(np.uint8)
    return Samples(small, samples.labels, samples.holders)
