"""One writer at a time, across processes: an advisory lock that ends with its process."""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from slimfl.errors import RequestError
from slimfl.files import plain_descriptor

#: Checking whether a folder is in use takes no longer than this.
LOOK_S = 0.2


@contextmanager
def only_writer(descriptor: int, path: Path) -> Iterator[None]:
    """Hold the lock on an open file, which protects `path`; a second holder is refused."""
    deadline = time.monotonic() + LOOK_S
    while not try_lock(descriptor, fcntl.LOCK_EX):
        # another process may only be checking whether it is in use
        if time.monotonic() > deadline:
            raise RequestError(f"another process is writing to {path}; wait for it or stop it")
        time.sleep(0.01)
    yield


@contextmanager
def open_file(path: Path, flags: int) -> Iterator[int]:
    """A descriptor that is closed at the end, which also releases its lock."""
    opened = os.open if flags & os.O_DIRECTORY else plain_descriptor
    descriptor = opened(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def try_lock(descriptor: int, kind: int) -> bool:
    """Take a lock if it is free; `kind` is LOCK_EX to write or LOCK_SH to check."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        # some network disks have no such locks; then no writer is kept out
        if error.errno not in (errno.EBADF, errno.ENOLCK, errno.ENOTSUP, errno.EINVAL):
            raise
    return True
