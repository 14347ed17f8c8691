"""Images and labels from users: arrays, torch and Hugging Face datasets, folders of images.

All become bytes [sample, row, column, channel] and whole numbers, or are refused with what to
change.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimfl.errors import RequestError

_LABELS = ("label", "labels", "fine_label", "target")

#: Bytes and labels of several images.
Pair = tuple[NDArray[np.uint8], NDArray[np.int64]]

#: Values of one image, of which a training step holds several hundred copies; and pixels of a file
#: that is resized.
MOST_PIXELS, MOST_DECODED = 1_000_000, 100_000_000

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".pgm", ".ppm", ".tif", ".tiff")


_BYTES = "bytes from 0 to 255, or those divided by 255"


def as_bytes(images: Any, what: str = "images") -> NDArray[np.uint8]:
    """Images [sample, row, column] or [sample, row, column, channel] as bytes with channels.

    Numbers from 0 to 1 must be bytes divided by 255, as `ToTensor` gives them.
    """
    pixels = _array(images, what)
    if pixels.ndim == 3:
        pixels = pixels[..., np.newaxis]
    if pixels.ndim != 4 or 0 in pixels.shape[1:]:
        raise RequestError(
            f"{what} have the shape {pixels.shape}; give [sample, row, column] or "
            "[sample, row, column, channel]"
        )
    if pixels.shape[1] in (1, 3, 4) and pixels.shape[3] > 4:
        raise RequestError(
            f"{what} of shape {pixels.shape} seem to have the channels first; put them last: "
            "images.transpose(0, 2, 3, 1)"
        )
    return np.ascontiguousarray(_levels(pixels, what))


def _levels(pixels: NDArray[Any], what: str) -> NDArray[np.uint8]:
    if pixels.dtype == np.uint8:
        return pixels.view(np.uint8)
    if pixels.dtype.kind not in "fiub":
        raise RequestError(f"{what} are of type {pixels.dtype}; give {_BYTES}")
    if not len(pixels):
        return np.zeros(pixels.shape, np.uint8)
    low, high = float(pixels.min()), float(pixels.max())
    whole = pixels.dtype.kind in "iu"
    if not (low >= 0 and high <= (255 if whole else 1)):  # also for NaN
        raise RequestError(
            f"{what}: {pixels.dtype} values from {low:g} to {high:g}; give {_BYTES}; "
            "slimfl normalises them itself, according to data.normalise"
        )
    if whole:
        return pixels.astype(np.uint8)
    scaled = pixels.astype(np.float64) * 255
    levels = np.rint(scaled)
    precision = np.finfo(pixels.dtype).eps if pixels.dtype.kind == "f" else 0
    if np.abs(scaled - levels).max() > 255 * precision:
        raise RequestError(
            f"{what}: some values are between the 256 levels of bytes, and slimfl stores images as "
            "bytes; round them yourself: (255 * images).round().astype('uint8')"
        )
    return levels.astype(np.uint8)


def count_classes(train: NDArray[np.int64], test: NDArray[np.int64]) -> int:
    """The number of classes that labels show; refused if they leave it open."""
    present = np.unique(train)
    gaps = np.flatnonzero(present != np.arange(len(present)))
    way_on = "or say how many classes there are: Dataset.from_arrays(..., classes=...)"
    if len(gaps):
        raise RequestError(
            f"the training labels go from {present[0]} to {present[-1]} and none is {gaps[0]}; "
            f"number the classes from 0 without gaps, {way_on}"
        )
    unknown = np.setdiff1d(test, present)
    if len(unknown):
        raise RequestError(
            f"the test labels contain {unknown[0]}, which no training label is; leave these "
            f"samples out, {way_on}"
        )
    return len(present)


def as_labels(labels: Any, count: int, what: str = "labels") -> NDArray[np.int64]:
    """One class per image, counted from 0."""
    numbers = _array(labels, what)
    if numbers.ndim == 2 and numbers.shape[1] == 1:
        numbers = numbers[:, 0]
    if numbers.ndim != 1:
        raise RequestError(
            f"{what} have the shape {numbers.shape}; give one whole number per image (for one-hot "
            "rows, labels.argmax(1))"
        )
    if len(numbers) != count:
        raise RequestError(
            f"there are {count} images and {len(numbers)} {what}; give one per image"
        )
    if numbers.dtype.kind not in "iub" and (
        numbers.dtype.kind != "f" or (numbers != np.rint(numbers)).any()
    ):
        raise RequestError(f"{what} are of type {numbers.dtype}; give whole numbers from 0")
    if len(numbers) and numbers.min() < 0:
        raise RequestError(f"{what} start at {numbers.min()}; number the classes from 0")
    return numbers.astype(np.int64)


def _array(values: Any, what: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise RequestError(f"{what} are not an array of numbers: {reason}") from None


def torch_samples(dataset: Any, what: str) -> Pair:
    """The samples of a map-style torch dataset of (image, label)."""
    try:
        count = len(dataset)
    except TypeError:
        raise RequestError(
            f"{what} is a {type(dataset).__name__} without a length; give a dataset that can be "
            "indexed, not an iterable one"
        ) from None
    return _stacked((_pair(dataset[i], what) for i in range(count)), what)


def _pair(sample: Any, what: str) -> tuple[Any, Any]:
    if not isinstance(sample, Sequence) or len(sample) < 2:
        raise RequestError(
            f"a sample of {what} is a {type(sample).__name__}; it must be (image, label)"
        )
    return sample[0], sample[1]


def huggingface_samples(split: Any, image: str | None, label: str | None, what: str) -> Pair:
    """The samples of one split of a Hugging Face dataset."""
    columns = list(getattr(split, "column_names", ()))
    if not columns:
        raise RequestError(f"{what} is a {type(split).__name__}, not a Hugging Face dataset")
    image = _column(columns, image, ("image", "img", "pixel_values"), "image", what)
    label = _column(columns, label, _LABELS, "label", what)
    rows = (split[i] for i in range(len(split)))
    return _stacked(((row[image], row[label]) for row in rows), what)


def huggingface_classes(split: Any, label: str | None) -> int | None:
    """The number of classes that a Hugging Face dataset declares; None if it declares none."""
    column = _column(list(split.column_names), label, _LABELS, "label", "the dataset")
    feature = (getattr(split, "features", None) or {}).get(column)
    return getattr(feature, "num_classes", None)


def _column(
    columns: list[str], named: str | None, usual: tuple[str, ...], kind: str, what: str
) -> str:
    wanted = usual if named is None else (named,)
    for column in wanted:
        if column in columns:
            return column
    raise RequestError(
        f"{what} has no column {' or '.join(wanted)} but {', '.join(columns)}; give {kind}=..."
    )


def folder_samples(
    folder: Path, classes: Sequence[str], size: tuple[int, int] | None, grey: bool = False
) -> Pair:
    """The images in `folder/CLASS/`, by name, with the class's number as the label."""
    return _stacked(_opened(folder, classes, size, grey), str(folder))


def folder_classes(folder: Path) -> list[str]:
    """The names of the folders inside, in order."""
    if not folder.is_dir():
        raise RequestError(
            f"there is no folder {folder}; images are expected in train/CLASS/ and test/CLASS/"
        )
    return sorted(at.name for at in folder.iterdir() if at.is_dir() and at.name[:1] != ".")


def _opened(
    folder: Path, classes: Sequence[str], size: tuple[int, int] | None, grey: bool
) -> Iterator[tuple[Any, int]]:
    from PIL import Image

    for label, name in enumerate(classes):
        inside = folder / name
        files = sorted(inside.iterdir()) if inside.is_dir() else []
        # a pipe that is called .png would be waited for
        for path in (one for one in files if one.suffix.lower() in SUFFIXES and one.is_file()):
            try:
                with Image.open(path) as opened:
                    _check_size(opened, path, size)
                    image = opened.convert("L") if grey else _plain(opened)
            except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
                reason = " ".join(str(error).split())
                raise RequestError(f"{path} cannot be read as an image: {reason}") from None
            yield image.resize((size[1], size[0])) if size else image, label


def _check_size(image: Any, path: Path, size: tuple[int, int] | None) -> None:
    """Refuse an image before it is decoded; one that is resized may be as large as a photograph."""
    columns, rows = image.size
    most = MOST_PIXELS if size is None else MOST_DECODED
    if columns * rows > most:
        way = "give data.options.size = [32, 32]" if size is None else "make it smaller"
        raise RequestError(
            f"{path} has {columns} x {rows} pixels and may have {most:,}; {way} or leave it out"
        )


def _plain(image: Any) -> Any:
    """A PIL image as grey values or colours, without a palette and without transparency."""
    return image.convert("L" if image.mode in ("1", "L", "LA", "I", "I;16", "F") else "RGB")


def _stacked(pairs: Iterable[tuple[Any, Any]], what: str) -> Pair:
    """One array of all images; they must be alike, and may be PIL images, tensors or arrays."""
    images: list[NDArray[np.uint8]] = []
    labels: list[int] = []
    for number, (image, label) in enumerate(pairs):
        where = f"image {number} of {what}"
        pixels = as_bytes(_rows_columns_channels(image)[np.newaxis], where)[0]
        if images and pixels.shape != images[0].shape:
            raise RequestError(
                f"{where} is {_shape(pixels)} and the first is {_shape(images[0])}; all images "
                "must have the same size and kind; resize them first, or a folder of them with its "
                "options size and grey"
            )
        images.append(pixels)
        labels.append(int(as_labels(np.reshape(_numpy(label), -1)[:1], 1, f"label of {where}")[0]))
    if not images:
        raise RequestError(f"{what} has no images")
    return np.stack(images), np.array(labels, np.int64)


def _rows_columns_channels(image: Any) -> NDArray[Any]:
    if hasattr(image, "mode") and hasattr(image, "convert"):
        return np.asarray(_plain(image))
    pixels = _numpy(image)
    if hasattr(image, "permute") and pixels.ndim == 3:  # tensors have their channels first
        pixels = pixels.transpose(1, 2, 0)
    return pixels


def _numpy(value: Any) -> NDArray[Any]:
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    return np.asarray(value)


def _shape(pixels: NDArray[Any]) -> str:
    return " x ".join(map(str, pixels.shape))
