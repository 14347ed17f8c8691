"""Reading the small files of a kit."""

from pathlib import Path


def read_text(path: Path) -> str:
    """A file's text; a pipe in its place would be waited for without end."""
    if path.exists() and not path.is_file():
        raise OSError("it is not a file")
    return path.read_text()
