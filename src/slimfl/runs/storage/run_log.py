"""run.log: what a run logs besides its numbers; created with the first entry."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import cast

from slimfl.files import open_plain


@contextmanager
def log_to(path: Path) -> Iterator[None]:
    """Append what the package logs to a file."""
    if os.path.lexists(path):  # refuse a link before the run begins, not at the first warning
        open_plain(path, "a").close()
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
    def _open(self) -> TextIOWrapper:
        return cast(TextIOWrapper, open_plain(Path(self.baseFilename), "a"))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """A log that cannot be written, on a full disk for example, does not end the run."""

    def close(self) -> None:
        try:
            super().close()
        except OSError:  # the last entries did not fit on the disk
            self.stream = None
