"""A small synthetic dataset for tests and first tries: ten smooth shapes in noise."""

import hashlib

import numpy as np
from numpy.typing import NDArray

from slimfl.data.dataset import Dataset, Samples
from slimfl.experiment.naming import NO_OPTIONS
from slimfl.rng import generator


def synthetic(
    train: int = 2000, test: int = 500, size: int = 12, classes: int = 10, seed: int = 0
) -> Dataset:
    """Every class is a smooth random picture; a sample is that picture, shifted and noisy."""
    random = generator(seed, "synthetic")
    coarse = random.normal(size=(classes, 4, 4))
    smooth = coarse.repeat(-(-size // 4), axis=1).repeat(-(-size // 4), axis=2)[:, :size, :size]

    def draw(count: int) -> Samples:
        labels = np.arange(count) % classes
        shifts = random.integers(-1, 2, size=(count, 2))
        pictures: NDArray[np.float64] = np.stack(
            [
                np.roll(smooth[label], shift, (0, 1))
                for label, shift in zip(labels, shifts, strict=True)
            ]
        )
        pictures = 128 + 50 * pictures + 20 * random.normal(size=pictures.shape)
        order = random.permutation(count)
        images = np.clip(pictures, 0, 255).astype(np.uint8)[order][..., np.newaxis]
        return Samples(np.ascontiguousarray(images), labels[order].astype(np.int64))

    drawn_train, drawn_test = draw(train), draw(test)
    digest = hashlib.sha256(drawn_train.images.tobytes() + drawn_test.images.tobytes())
    by_default = (train, test, size, classes, seed) == synthetic.__defaults__
    return Dataset(
        "synthetic",
        drawn_train,
        drawn_test,
        classes,
        digest.hexdigest(),
        loaded_as=("synthetic", None, None, NO_OPTIONS, 1) if by_default else None,
    )
