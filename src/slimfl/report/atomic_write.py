"""Write a file atomically: readers see the old file or the new one."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from slimfl.errors import RequestError, RunError
from slimfl.files import replacing


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A temporary path to write to; it becomes `path` when the block ends without an error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            yield Path(file.name)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise RunError(
                f"the disk is full and {path} was not written; free some space"
            ) from error
        raise RequestError(
            f"{path} cannot be written ({error.strerror}); choose another path"
        ) from error
