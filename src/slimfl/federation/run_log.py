"""run.log: what happened in a run besides its numbers."""

import io
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def log_to(path: Path) -> Iterator[None]:
    """Append what the package logs to a file."""
    handler = _Handler(path, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("slimfl")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()


class _Handler(logging.FileHandler):
    def _open(self) -> io.TextIOWrapper:
        # a link in a folder that somebody else made must not lead to a file of one's own
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
        return os.fdopen(os.open(self.baseFilename, flags, 0o644), "a", encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """A log that cannot be written, on a full disk for example, does not end the run."""

    def close(self) -> None:
        try:
            super().close()
        except OSError:  # the last words did not fit on the disk
            self.stream = None
