"""The idx file format of MNIST: a magic number, the sizes, then unsigned bytes."""

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from slimfl.errors import RequestError
from slimfl.files import NotRegularError, open_regular

UNSIGNED_BYTE = 0x08


#: Maximum number of dimensions: sample, row, column, channel.
MOST_DIMENSIONS = 4
#: Maximum size of a file, as a dataset is kept in memory.
MOST_BYTES = 1 << 30


def read_bytes(path: Path) -> bytearray:
    """The file's contents, unpacked if it is gzipped.

    A file that holds more than its header declares is refused as soon as that is known: a few
    kilobytes of gzip may unpack to gigabytes.
    """
    try:
        with open_regular(path) as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            return _read(gzip.GzipFile(fileobj=file) if packed else file)
    except (OSError, EOFError, zlib.error) as error:
        raise RequestError(f"the data file {path} cannot be read ({error}); replace it") from None


def _read(file: IO[bytes] | gzip.GzipFile) -> bytearray:
    # a bytearray, because torch requires shared memory to be writable
    contents = bytearray(file.read(4 + 4 * MOST_DIMENSIONS))
    size = _declared_size(contents)
    if size > MOST_BYTES:
        raise NotRegularError(f"its header declares more than {MOST_BYTES:,} bytes")
    while len(contents) <= size and (more := file.read(min(1 << 20, size + 1 - len(contents)))):
        contents += more
    if len(contents) > size:
        raise NotRegularError("it has more data than its header declares")
    return contents


def _declared_size(start: bytes | bytearray) -> int:
    """The size of an idx file with this header; of other files, the size of a header."""
    dimensions = start[3] if len(start) > 3 else 0
    header = 4 + 4 * dimensions
    if dimensions > MOST_DIMENSIONS or len(start) < header:
        return len(start)
    return header + math.prod(_shape(start, dimensions))


def _shape(raw: bytes | bytearray, dimensions: int) -> tuple[int, ...]:
    return struct.unpack(f">{dimensions}I", raw[4 : 4 + 4 * dimensions])


def parse(raw: bytes | bytearray, path: Path) -> NDArray[np.uint8]:
    """The array in the bytes of an idx file; `path` is only named in errors."""
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] != UNSIGNED_BYTE:
        raise RequestError(f"{path} is not an idx file of unsigned bytes; replace it")
    dimensions = raw[3]
    if not 1 <= dimensions <= MOST_DIMENSIONS:
        raise RequestError(f"the idx file {path} has {dimensions} dimensions; replace it")
    header = 4 + 4 * dimensions
    if len(raw) < header:
        raise RequestError(f"the idx file {path} is cut off within its header; replace it")
    shape = _shape(raw, dimensions)
    if len(raw) - header != math.prod(shape):
        raise RequestError(
            f"the idx file {path} should have {math.prod(shape)} values and has "
            f"{len(raw) - header}; replace it"
        )
    writable = raw if isinstance(raw, bytearray) else bytearray(raw)
    return np.frombuffer(writable, np.uint8, offset=header).reshape(shape)


def serialise(array: NDArray[np.uint8]) -> bytes:
    """The idx file of an array, which `parse` reads."""
    head = struct.pack(f">HBB{array.ndim}I", 0, UNSIGNED_BYTE, array.ndim, *array.shape)
    return head + array.tobytes()
