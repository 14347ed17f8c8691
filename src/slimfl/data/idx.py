"""The idx file format of MNIST: a magic number, the sizes, then unsigned bytes."""

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slimfl.errors import RequestError

UNSIGNED_BYTE = 0x08


def read_bytes(path: Path) -> bytes:
    """The file's contents, unpacked if it is gzipped."""
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except (OSError, EOFError, zlib.error) as error:
        raise RequestError(f"the data file {path} cannot be read ({error}); replace it") from None


def parse(raw: bytes, path: Path) -> NDArray[np.uint8]:
    """The array in the bytes of an idx file; `path` is only named in errors."""
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] != UNSIGNED_BYTE:
        raise RequestError(f"{path} is not an idx file of unsigned bytes; replace it")
    dimensions = raw[3]
    header = 4 + 4 * dimensions
    if len(raw) < header:
        raise RequestError(f"the idx file {path} ends within its header; replace it")
    shape = struct.unpack(f">{dimensions}I", raw[4:header])
    if len(raw) - header != math.prod(shape):
        raise RequestError(
            f"the idx file {path} should hold {math.prod(shape)} values and holds "
            f"{len(raw) - header}; replace it"
        )
    # a bytearray, because torch wants to be able to write to what it shares
    return np.frombuffer(bytearray(raw), np.uint8, offset=header).reshape(shape)


def serialise(array: NDArray[np.uint8]) -> bytes:
    """The idx file that holds an array; `parse` reads it."""
    head = struct.pack(f">HBB{array.ndim}I", 0, UNSIGNED_BYTE, array.ndim, *array.shape)
    return head + array.tobytes()
