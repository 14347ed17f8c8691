"""Files of published datasets: the idx format of MNIST, and CIFAR-10's binary format.

An idx file is a magic number, the sizes, then unsigned bytes; a dataset has four of them. A record
of CIFAR-10 is one byte of label and 3,072 bytes of pixels: 1,024 red, then green, then blue, by
rows.
"""

import gzip
import hashlib
import math
import struct
import zlib
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from slimfl.data.dataset import Dataset, Samples
from slimfl.data.images import MOST_PIXELS
from slimfl.errors import RequestError
from slimfl.files import open_regular, read_regular

#: The idx files of a dataset, plain or .gz.
FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)

UNSIGNED_BYTE = 0x08
#: Maximum number of dimensions: sample, row, column, channel.
MOST_DIMENSIONS = 4
#: Maximum size of a file, as a dataset is kept in memory.
MOST_BYTES = 1 << 30


def read_idx(path: Path) -> tuple[NDArray[np.uint8], str]:
    """The array in an idx file, unpacked if it is gzipped, and the checksum of its contents.

    No more is read than the header declares: a few kilobytes of gzip may unpack to gigabytes.
    """
    try:
        with open_regular(path) as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            contents = gzip.GzipFile(fileobj=file) if packed else file
            shape, header = _shape(contents, path)
            # a bytearray, because torch requires shared memory to be writable
            values = bytearray(contents.read(math.prod(shape) + 1))
    except (OSError, EOFError, zlib.error) as error:
        raise RequestError(f"the data file {path} cannot be read ({error}); replace it") from None
    if len(values) != math.prod(shape):
        held = "more" if len(values) > math.prod(shape) else f"{len(values)}"
        raise RequestError(
            f"the idx file {path} should have {math.prod(shape)} values and has {held}; replace it"
        )
    checksum = hashlib.sha256(header)
    checksum.update(values)
    return np.frombuffer(values, np.uint8).reshape(shape), checksum.hexdigest()


def _shape(contents: IO[bytes] | gzip.GzipFile, path: Path) -> tuple[tuple[int, ...], bytes]:
    """What the header of an idx file declares, and the header."""
    magic = contents.read(4)
    if len(magic) < 4 or magic[:3] != bytes([0, 0, UNSIGNED_BYTE]):
        raise RequestError(f"{path} is not an idx file of unsigned bytes; replace it")
    dimensions = magic[3]
    if not 1 <= dimensions <= MOST_DIMENSIONS:
        raise RequestError(f"the idx file {path} has {dimensions} dimensions; replace it")
    sizes = contents.read(4 * dimensions)
    if len(sizes) < 4 * dimensions:
        raise RequestError(f"the idx file {path} is cut off within its header; replace it")
    shape = struct.unpack(f">{dimensions}I", sizes)
    if math.prod(shape) > MOST_BYTES:
        raise RequestError(
            f"the header of the idx file {path} declares more than {MOST_BYTES:,} bytes; replace it"
        )
    return shape, magic + sizes


def serialise(array: NDArray[np.uint8]) -> bytes:
    """The idx file of an array, which `read_idx` reads."""
    head = struct.pack(f">HBB{array.ndim}I", 0, UNSIGNED_BYTE, array.ndim, *array.shape)
    return head + array.tobytes()


def _file(folder: Path, name: str) -> Path | None:
    try:
        return next((p for p in (folder / name, folder / f"{name}.gz") if p.is_file()), None)
    except OSError:  # a name that no file can have
        return None


def has_idx_files(folder: Path) -> bool:
    """Whether a folder has all four."""
    return all(_file(folder, name) for name in FILES)


def read_idx_folder(name: str, folder: Path, sha256: tuple[str, ...] | None) -> Dataset:
    """The dataset in four idx files.

    Args:
        name: Of the dataset.
        folder: With the files.
        sha256: Of their unpacked contents; None if any will do.
    """
    arrays, digest = [], hashlib.sha256()
    for position, file in enumerate(FILES):
        path = _file(folder, file)
        if path is None:
            raise RequestError(f"{folder} has no {file} (plain or .gz); add it")
        array, found = read_idx(path)
        if sha256 is not None and found != sha256[position]:
            raise RequestError(f"{path} has the wrong checksum for {name}; replace it")
        digest.update(found.encode())
        arrays.append(array)
    train = _samples(arrays[0], arrays[1], folder)
    test = _samples(arrays[2], arrays[3], folder)
    if train.images.shape[1:] != test.images.shape[1:]:
        raise RequestError(f"the training and test images of {folder} differ in size; use one size")
    classes = int(max(train.labels.max(), test.labels.max())) + 1
    return Dataset(name, train, test, classes, digest.hexdigest())


def _samples(images: np.ndarray, labels: np.ndarray, folder: Path) -> Samples:
    if images.ndim not in (3, 4) or labels.ndim != 1 or len(images) != len(labels):
        raise RequestError(
            f"{folder} has images of shape {images.shape} and labels of shape {labels.shape}; give "
            "one label per image"
        )
    if not len(labels):
        raise RequestError(f"{folder} has no samples; use another folder")
    if images.ndim == 3:
        images = images[..., np.newaxis]
    pixels = math.prod(images.shape[1:])
    if not 1 <= pixels <= MOST_PIXELS:
        raise RequestError(
            f"{folder} has images of shape {images.shape[1:]}; rows, columns and channels must be "
            f"at least 1, and an image may have at most {MOST_PIXELS:,} values"
        )
    return Samples(images, labels.astype(np.int64))


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
    parts = [_read_batch(folder / name, digest) for name in there]
    images = np.concatenate([part.images for part in parts])
    train = Samples(images, np.concatenate([part.labels for part in parts]))
    test = _read_batch(folder / TEST, digest)
    return Dataset("cifar-10", train, test, CLASSES, digest.hexdigest())


def _read_batch(path: Path, digest: "hashlib._Hash") -> Samples:
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
