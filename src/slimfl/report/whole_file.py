"""Write a file whole or not at all: whoever reads the path sees the old one or the new one."""

import errno
import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from slimfl.errors import RequestError, RunError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path to write to; it becomes `path` when the block ends well."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)
        # exclusive: a link of that name in somebody else's folder is not followed
        with temporary.open("xb") as mine:
            _remove_leftovers(path, mine.fileno())
            yield temporary
        temporary.replace(path)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise RunError(f"the disk is full: {path} was not written; make room") from error
        raise RequestError(
            f"{path} cannot be written ({error.strerror}); choose another path"
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _remove_leftovers(path: Path, mine: int) -> None:
    """Remove what killed processes left; a living one holds the lock of its temporary file."""
    try:
        fcntl.flock(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return  # a disk without locks: nobody can tell
    pattern = re.compile(rf"\.{re.escape(path.name)}\.\d+\.tmp")
    for other in path.parent.iterdir():
        if not pattern.fullmatch(other.name) or other.is_symlink() or not other.is_file():
            continue
        with suppress(OSError), other.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails for one that is in use
            other.unlink(missing_ok=True)
