"""A labelled image dataset, held once in memory as bytes."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

#: What a `data` section asks for: the dataset's name, training samples, test samples, options, and
#: by what its images are scaled down.
Asked = tuple[str, int | None, int | None, str, int]

#: Mean and deviation of every image channel.
Moments = tuple[NDArray[np.float32], NDArray[np.float32]]

#: Mean and deviation that are the same for all data, by their name in `data.normalise`.
CONSTANTS = {"plain": (0.0, 1.0), "centred": (0.5, 0.5)}


@dataclass(frozen=True)
class Samples:
    """Images as unsigned bytes [sample, row, column, channel] and a label for each."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def first(self, count: int | None) -> "Samples":
        """A view of the first `count` samples; all of them when `count` is None."""
        return self if count is None else Samples(self.images[:count], self.labels[:count])


@dataclass(frozen=True)
class Dataset:
    """Training and test samples; `checksum` identifies their contents."""

    name: str
    train: Samples
    test: Samples
    classes: int
    checksum: str
    moments: Moments | None = field(default=None, compare=False)
    """Mean and deviation that were computed elsewhere and are to be used here."""
    loaded_as: Asked | None = field(default=None, compare=False)
    """What it was loaded as; None if it was made by hand."""

    def normalisation(self, kind: str) -> Moments:
        """Mean and deviation per channel by which images in [0, 1] are shifted and scaled."""
        if self.moments is not None:
            return self.moments
        channels = self.train.images.shape[-1]
        if kind in CONSTANTS:
            mean_of_all, deviation_of_all = CONSTANTS[kind]
            return (
                np.full(channels, mean_of_all, np.float32),
                np.full(channels, deviation_of_all, np.float32),
            )
        mean, deviation = [], []
        for channel in range(channels):
            # a histogram of bytes gives the exact moments without a float copy of the images
            counts = np.zeros(256, np.int64)
            for start in range(0, len(self.train), 1000):
                some = self.train.images[start : start + 1000, ..., channel]
                counts += np.bincount(some.ravel(), minlength=256)
            values = np.arange(256) / 255
            mean.append(np.average(values, weights=counts))
            variance = np.average((values - mean[-1]) ** 2, weights=counts)
            deviation.append(max(np.sqrt(variance), 1e-6))
        return np.array(mean, np.float32), np.array(deviation, np.float32)
