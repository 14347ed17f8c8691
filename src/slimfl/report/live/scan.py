"""Finds run folders at and below the watched paths, within limits."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from slimfl.errors import RequestError
from slimfl.runs.storage.run_folder import EXPERIMENT

#: `slimfl run` writes to runs/GROUP/RUN; one more level allows for sorted groups.
DEPTH = 3
#: Maximum number of folder entries per scan, so that a watched home folder does not stall it.
MOST_ENTRIES = 20_000
#: Maximum number of runs on a readable page.
MOST_RUNS = 200

#: Device, inode, size and time of a file: if they are the same, the file is unchanged.
Stamp = tuple[int, int, int, int]


@dataclass(frozen=True)
class Scan:
    """The result of a scan."""

    runs: dict[Path, Stamp]
    """Every run folder, with the stamp of its experiment."""
    left_out: int
    """Number of runs beyond `MOST_RUNS`; the newest are kept."""


def check_paths(paths: Sequence[Path]) -> list[Path]:
    """The paths as absolute paths; `RequestError` if one is not a folder."""
    for path in paths:
        if not path.exists():
            raise RequestError(
                f"there is no folder {path}; give a run folder, or a folder that contains runs"
            )
        if not path.is_dir():
            raise RequestError(f"{path} is a file; give the folder of the run")
    return [path.absolute() for path in paths]


def run_folders(paths: Iterable[Path]) -> Scan:
    """The run folders at and below these paths, by path."""
    found: dict[Path, Stamp] = {}
    left = [MOST_ENTRIES]
    for path in paths:
        for folder in _below(path, DEPTH, left):
            stamp = stamp_of(folder / EXPERIMENT)
            if stamp is not None:
                found.setdefault(folder, stamp)
    newest = sorted(found, key=lambda folder: found[folder][3], reverse=True)[:MOST_RUNS]
    return Scan({path: found[path] for path in sorted(newest)}, len(found) - len(newest))


def stamp_of(path: Path) -> Stamp | None:
    """The stamp of a file; None if it does not exist."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _below(folder: Path, depth: int, left: list[int]) -> Iterator[Path]:
    if (folder / EXPERIMENT).is_file():
        yield folder
        return
    if depth == 0:
        return
    inside = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                left[0] -= 1
                if left[0] < 0:
                    break
                # a link could lead anywhere, or back here
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                    inside.append(Path(entry.path))
    except OSError:  # it has vanished or cannot be read
        return
    for path in sorted(inside, reverse=True):  # by default names start with the time: newest first
        yield from _below(path, depth - 1, left)
