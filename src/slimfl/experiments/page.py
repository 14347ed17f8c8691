"""The HTML page of a reproduction."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def write_page(document: dict[str, Any], out: Path) -> Path:
    """Write OUT/index.html from the results; pictures are put into the page."""
    return out / "index.html"
