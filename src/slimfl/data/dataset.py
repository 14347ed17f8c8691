"""A labelled image dataset, held once in memory as bytes."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from slimfl.data import images as of_users
from slimfl.data.images import as_bytes, as_labels, count_classes
from slimfl.errors import RequestError
from slimfl.extras import require

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
    holders: NDArray[np.int64] | None = None
    """The device that holds each sample, where the data say so (`data.partition = "natural"`)."""

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        size = " x ".join(map(str, self.images.shape[1:]))
        return f"Samples({len(self)} images of {size})"

    def first(self, count: int | None) -> "Samples":
        """A view of the first `count` samples; all of them when `count` is None."""
        if count is None:
            return self
        holders = None if self.holders is None else self.holders[:count]
        return Samples(self.images[:count], self.labels[:count], holders)

    def downscaled(self, factor: int) -> "Samples":
        """Smaller images: the mean of every square of `factor` x `factor` pixels, rounded.

        A quarter of the pixels is about a quarter of the cost of training.
        """
        if factor == 1:
            return self
        count, rows, columns, channels = self.images.shape
        if rows % factor or columns % factor:
            raise RequestError(
                f"data.downscale = {factor} does not divide images of {rows} x {columns}; choose a "
                "divisor of both sides"
            )
        small = np.empty((count, rows // factor, columns // factor, channels), np.uint8)
        for start in range(0, count, 1000):  # in pieces: sums take four times the memory
            some = self.images[start : start + 1000]
            squares = some.reshape(len(some), rows // factor, factor, columns // factor, factor, -1)
            means = squares.mean((2, 4), dtype=np.float32)
            small[start : start + 1000] = np.floor(means + 0.5).astype(np.uint8)
        return Samples(small, self.labels, self.holders)


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

    def __post_init__(self) -> None:
        for kind, samples in (("training", self.train), ("test", self.test)):
            images, labels = samples.images, samples.labels
            if images.dtype != np.uint8 or images.ndim != 4:
                raise RequestError(
                    f"the {kind} images are {images.dtype} of shape {images.shape}, not bytes "
                    "[sample, row, column, channel]; use Dataset.from_arrays to convert them"
                )
            if labels.shape != images.shape[:1] or labels.dtype.kind not in "iu":
                raise RequestError(
                    f"the {kind} labels are {labels.dtype} of shape {labels.shape}; give one whole "
                    f"number for each of {len(images)} images"
                )
            if len(labels) and not 0 <= labels.min() <= labels.max() < self.classes:
                raise RequestError(
                    f"the {kind} labels go from {labels.min()} to {labels.max()}, which are not "
                    f"{self.classes} classes counted from 0"
                )
        holders = self.train.holders
        if holders is not None and holders.shape != self.train.labels.shape:
            raise RequestError(
                f"there are {len(holders)} holders for {len(self.train)} training images; name "
                "the device of every image"
            )
        if self.train.images.shape[1:] != self.test.images.shape[1:]:
            raise RequestError(
                f"training images are {self.train.images.shape[1:]} and test images "
                f"{self.test.images.shape[1:]}; give both the same size"
            )

    def __repr__(self) -> str:
        size = " x ".join(map(str, self.train.images.shape[1:]))
        return (
            f"Dataset({self.name!r}, {len(self.train)} training and {len(self.test)} test images "
            f"of {size}, {self.classes} classes)"
        )

    @classmethod
    def from_arrays(
        cls,
        train_images: Any,
        train_labels: Any,
        test_images: Any,
        test_labels: Any,
        *,
        name: str = "arrays",
        classes: int | None = None,
        holders: Any = None,
    ) -> Self:
        """Data in memory: images [sample, row, column] with or without channels at the end.

        Args:
            train_images: Bytes from 0 to 255, or those divided by 255.
            train_labels: [sample] classes, counted from 0.
            test_images: As those for training.
            test_labels: As those for training.
            name: Of the dataset.
            classes: How many; the number of different labels by default, and then every class must
                have training samples.
            holders: The device of every training image, by numbers or by words, for
                `data.partition = "natural"`.
        """
        train = as_bytes(train_images, "training images")
        test = as_bytes(test_images, "test images")
        return cls._of(
            (train, as_labels(train_labels, len(train), "training labels")),
            (test, as_labels(test_labels, len(test), "test labels")),
            name,
            classes,
            holders,
        )

    @classmethod
    def from_torch(
        cls,
        train: Any,
        test: Any,
        *,
        name: str = "torch",
        classes: int | None = None,
        holders: Any = None,
    ) -> Self:
        """Two torch datasets of (image, label), such as torchvision's; holders as in `from_arrays`.

        An image may be a tensor [channel, row, column], an array or a PIL image. Leave out random
        transformations and `Normalize`: every sample is read once.
        """
        return cls._of(
            of_users.torch_samples(train, "train"),
            of_users.torch_samples(test, "test"),
            name,
            classes,
            holders,
        )

    @classmethod
    def from_folder(
        cls,
        folder: Path | str,
        *,
        size: tuple[int, int] | None = None,
        train: str = "train",
        test: str = "test",
        grey: bool = False,
        name: str | None = None,
    ) -> Self:
        """Image files in `train/CLASS/` and `test/CLASS/`.

        Args:
            folder: With the two folders inside.
            size: Rows and columns to which images are resized.
            train: Name of the folder of training images.
            test: Name of the folder of test images.
            grey: Whether to take the brightness of colour images alone.
            name: Of the dataset; the folder's by default.
        """
        path = Path(folder).expanduser()
        known = of_users.folder_classes(path / train)
        unknown = set(of_users.folder_classes(path / test)) - set(known)
        if unknown:
            raise RequestError(
                f"{path / test} has the class {min(unknown)}, which {path / train} does not have"
            )
        of_train, of_test = (
            of_users.folder_samples(path / part, known, size, grey) for part in (train, test)
        )
        return cls._of(of_train, of_test, name or path.name, len(known))

    @classmethod
    def from_huggingface(
        cls,
        source: Any,
        *,
        train: str = "train",
        test: str = "test",
        image: str | None = None,
        label: str | None = None,
        name: str = "huggingface",
    ) -> Self:
        """A `DatasetDict`, or its name on the hub, which needs the extra `huggingface`.

        Args:
            source: Either.
            train: Name of the split of training samples.
            test: Name of the split of test samples.
            image: Name of the column of images, where it is not a usual one.
            label: Name of the column of labels, where it is not a usual one.
            name: Of the dataset.
        """
        if isinstance(source, str):
            name, source = source, _from_hub(source)
        for split in (train, test):
            if not isinstance(source, Mapping) or split not in source:
                found = ", ".join(map(str, source)) if isinstance(source, Mapping) else "none"
                raise RequestError(
                    f"the Hugging Face dataset has no split {split!r} (its splits: {found}); give "
                    "train=... and test=..."
                )
        of_train = of_users.huggingface_samples(source[train], image, label, train)
        of_test = of_users.huggingface_samples(source[test], image, label, test)
        return cls._of(of_train, of_test, name, of_users.huggingface_classes(source[train], label))

    @classmethod
    def _of(
        cls,
        train: of_users.Pair,
        test: of_users.Pair,
        name: str,
        classes: int | None,
        holders: Any = None,
    ) -> Self:
        digest = hashlib.sha256()
        # devices are numbered in the order of their names
        held = None if holders is None else np.unique(holders, return_inverse=True)[1]
        contents: list[NDArray[Any]] = [*train, *test]
        for array in contents if held is None else [*contents, held]:
            digest.update(f"{array.dtype.str} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        if not len(train[1]) or not len(test[1]):
            raise RequestError("there must be at least one training image and one test image")
        count = count_classes(train[1], test[1]) if classes is None else classes
        return cls(name, Samples(*train, held), Samples(*test), count, digest.hexdigest())

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


def _from_hub(name: str) -> Any:
    require("huggingface", "datasets")
    from datasets import load_dataset

    return load_dataset(name)
