"""CIFAR-10 in its published binary format: a folder with data_batch_1.bin to 5 and test_batch.bin.

A record is one byte of label and 3,072 bytes of pixels: 1,024 red, then green, then blue, by rows.
"""

import hashlib
from pathlib import Path

import numpy as np

from slimfl.data.dataset import Dataset, Samples
from slimfl.errors import RequestError
from slimfl.files import read_regular

TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
TEST = "test_batch.bin"
CLASSES = 10

_SIDE = 32
_RECORD = 1 + 3 * _SIDE * _SIDE
_MOST_BYTES = 10_000 * _RECORD


def is_cifar10(folder: Path) -> bool:
    """True if a folder looks like CIFAR-10's."""
    return (folder / TEST).is_file()


def read_cifar10(folder: Path) -> Dataset:
    """All existing training batches, and the test batch."""
    there = [name for name in TRAIN if (folder / name).is_file()]
    if not there:
        raise RequestError(f"{folder} has {TEST} but none of {TRAIN[0]} to {TRAIN[-1]}; add them")
    digest = hashlib.sha256()
    parts = [_read(folder / name, digest) for name in there]
    images = np.concatenate([part.images for part in parts])
    train = Samples(images, np.concatenate([part.labels for part in parts]))
    test = _read(folder / TEST, digest)
    return Dataset("cifar-10", train, test, CLASSES, digest.hexdigest())


def _read(path: Path, digest: "hashlib._Hash") -> Samples:
    try:
        content = read_regular(path, _MOST_BYTES)
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}") from None
    digest.update(content)
    records = np.frombuffer(content, np.uint8)
    if not len(records) or len(records) % _RECORD:
        raise RequestError(
            f"{path} has {len(records)} bytes, which is not a multiple of {_RECORD}; use the "
            "binary version of CIFAR-10"
        )
    records = records.reshape(-1, _RECORD)
    if records[:, 0].max() >= CLASSES:
        raise RequestError(f"{path} has a label above {CLASSES - 1}: it is not CIFAR-10")
    images = records[:, 1:].reshape(-1, 3, _SIDE, _SIDE).transpose(0, 2, 3, 1)
    return Samples(np.ascontiguousarray(images), records[:, 0].astype(np.int64))
