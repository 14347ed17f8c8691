"""What happened otherwise in a run: warnings, in a file that is only there once there is one."""

import logging
import os
from io import TextIOWrapper
from pathlib import Path
from typing import cast

from slimfl.files import open_plain


class RunLog(logging.FileHandler):
    """Appends to a plain file; a link in its place is refused before the run, not in a warning."""

    def __init__(self, path: Path) -> None:
        if os.path.lexists(path):
            open_plain(path, "a").close()
        super().__init__(path, delay=True)
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))

    def _open(self) -> TextIOWrapper:
        return cast(TextIOWrapper, open_plain(Path(self.baseFilename), "a"))
