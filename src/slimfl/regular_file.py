"""Read files that others made: regular files alone, and no more of them than makes sense.

Opening a FIFO waits for a writer that may never come, and a device such as `/dev/zero` never ends.
"""

import errno
import os
import stat
from pathlib import Path
from typing import IO


class NotRegularError(OSError):
    """A path that is no regular file, or holds more than it should."""

    def __init__(self, problem: str) -> None:
        super().__init__(errno.EINVAL, problem)


def open_regular(path: Path) -> IO[bytes]:
    """Open a file for reading; `NotRegularError` for a folder, a FIFO, a socket or a device."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:  # a name with a NUL byte
        raise NotRegularError(str(error)) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotRegularError("it is not a regular file")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, most_bytes: int) -> bytes:
    """The contents of a regular file; one of more than `most_bytes` is refused."""
    contents = bytearray()
    with open_regular(path) as file:
        # in pieces: to read all at once would first take that much memory
        while more := file.read(1 << 20):
            contents += more
            if len(contents) > most_bytes:
                raise NotRegularError(f"it holds more than {most_bytes:,} bytes")
    return bytes(contents)
