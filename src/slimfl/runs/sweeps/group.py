"""A folder of runs, which one process at a time may change."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from slimfl.errors import RequestError
from slimfl.files import own_folder, remove_leftovers
from slimfl.round import RunFolder
from slimfl.runs.storage.locks import only_writer, open_file
from slimfl.runs.storage.run_folder import EXPERIMENT, disk_errors


@contextmanager
def new_group(group: Path) -> Iterator[None]:
    """Create a folder for runs if necessary, and keep other processes out of it."""
    if (group / EXPERIMENT).exists():
        raise RequestError(f"{group} is a single run, not a folder of runs; choose another --out")
    with disk_errors(group, "and give the same command again"):
        group.mkdir(parents=True, exist_ok=True)
    with _held(group):
        _remove_leftovers(group)
        yield


@contextmanager
def existing_group(group: Path) -> Iterator[list[RunFolder]]:
    """Keep other processes out of a group; gives its runs."""
    if (group / EXPERIMENT).is_file():
        yield [RunFolder.open(group)]  # a single run, which has its own lock
        return
    if not group.exists():
        raise RequestError(f"there is no folder {group}; give the path of a run folder")
    if not group.is_dir():
        raise RequestError(f"{group} is a file; give the folder of the run")
    with _held(group):
        _remove_leftovers(group)
        inside = [at for at in sorted(group.iterdir()) if (at / EXPERIMENT).is_file()]
        for at in inside:
            own_folder(at)
        if not inside:
            raise RequestError(
                f"{group} is not a run folder and contains none, so there is nothing to resume; "
                "use `slimfl run`"
            )
        yield [RunFolder(at) for at in inside]


def _remove_leftovers(group: Path) -> None:
    # of killed processes; a link below a group may lead to other people's files
    for folder in (group, *(at for at in group.iterdir() if not at.is_symlink())):
        remove_leftovers(folder, ".+")


@contextmanager
def _held(group: Path) -> Iterator[None]:
    # lock the folder itself, which leaves no file behind
    with (
        open_file(group.resolve(), os.O_RDONLY | os.O_DIRECTORY) as descriptor,
        only_writer(descriptor, group),
    ):
        yield
