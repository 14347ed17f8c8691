"""Write a file whole or not at all: whoever reads the path sees the old one or the new one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from slimfl.errors import RequestError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path to write to; it becomes `path` when the block ends well."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise RequestError(
            f"{path} cannot be written ({error.strerror}); choose another path"
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
