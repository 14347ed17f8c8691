"""Random images for the bench: arithmetic takes the same time on any, so none are downloaded."""

import numpy as np

from slimfl.data import Dataset, Samples
from slimfl.rng import generator


def bench_dataset(count: int, test: int = 100) -> Dataset:
    """Random images of Fashion-MNIST's size."""
    random = generator(0, "bench")

    def draw(n: int) -> Samples:
        images = random.integers(0, 256, (n, 28, 28, 1), dtype=np.uint8)
        return Samples(images, random.integers(0, 10, n))

    return Dataset("bench", draw(count), draw(test), 10, "random")
