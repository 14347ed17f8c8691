"""Checks images and labels from users, and converts them to bytes and integers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimfl.errors import RequestError

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
            f"{what} have values from {low:g} to {high:g}; give {_BYTES}; slimfl normalises them "
            "itself, according to data.normalise"
        )
    if whole:
        return pixels.astype(np.uint8)
    scaled = pixels.astype(np.float64) * 255
    levels = np.rint(scaled)
    precision = np.finfo(pixels.dtype).eps if pixels.dtype.kind == "f" else 0
    if np.abs(scaled - levels).max() > 255 * precision:
        raise RequestError(
            f"{what} have values between the 256 levels of bytes, and slimfl stores images as "
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
