"""A folder of runs, laid out so that a kill at any moment loses none of them.

What every run's experiment.toml will say is first written to one file, plan.json, in one step. Then
the run folders are made, then the file is removed. Found later, it says what is still to be made.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from slimfl import config
from slimfl.errors import RequestError
from slimfl.federation import RunFolder
from slimfl.federation.storage.locks import only_writer, open_file
from slimfl.federation.storage.run_folder import (
    EXPERIMENT,
    disk_errors,
    resume_command,
)
from slimfl.files import remove_leftovers, sync_folder, write_atomically

PLAN = "plan.json"


@contextmanager
def new_group(group: Path) -> Iterator[None]:
    """Make a folder for runs, unless it is there, and keep other processes out of it."""
    with disk_errors(group, "and give the same command again"):
        group.mkdir(parents=True, exist_ok=True)
    with _held(group):
        yield


@contextmanager
def existing_group(group: Path) -> Iterator[list[RunFolder]]:
    """Keep other processes out of a run folder's group; gives its runs, with those only planned."""
    if (group / EXPERIMENT).is_file():
        yield [RunFolder.open(group)]  # a single run, which has a lock of its own
        return
    if not group.exists():
        raise RequestError(f"there is no folder {group}; give the path of a run folder")
    if not group.is_dir():
        raise RequestError(f"{group} is a file; give the folder of the run")
    with _held(group):
        for folder in (group, *group.iterdir()):  # what killed processes left half written
            remove_leftovers(folder, ".+")
        make_planned(group)
        runs = [RunFolder(at) for at in sorted(group.iterdir()) if (at / EXPERIMENT).is_file()]
        if not runs:
            raise RequestError(
                f"{group} is not a run folder and contains none, so there is nothing to resume; "
                "use `slimfl run`"
            )
        yield runs


def check_free(group: Path, names: Mapping[str, object]) -> None:
    """Refuse a folder that holds one of these runs already, or is a run itself."""
    if (group / EXPERIMENT).exists():
        raise RequestError(f"{group} is a single run, not a folder of runs; choose another --out")
    if (group / PLAN).exists() or any((group / name / EXPERIMENT).exists() for name in names):
        raise RequestError(
            f"{group} already has these runs; continue them with `{resume_command(group)}`, or "
            "choose another --out"
        )


def write_plan(group: Path, texts: Mapping[str, str]) -> None:
    """Write down which runs there are to be: their names, and what experiment.toml will say."""
    check_free(group, texts)
    with disk_errors(group, "and give the same command again"):
        write_atomically(group / PLAN, json.dumps({"runs": texts}).encode())


def make_planned(group: Path) -> list[RunFolder]:
    """Make the run folders that a plan still lacks; without a plan there are none to make."""
    with disk_errors(group, f"then `{resume_command(group)}`"):
        planned = _read_plan(group / PLAN)
        for name, text in planned.items():
            if not (group / name / EXPERIMENT).exists():
                RunFolder.write_new(group / name, text)
        (group / PLAN).unlink(missing_ok=True)
        remove_leftovers(group, re.escape(PLAN))
        sync_folder(group)
    return [RunFolder.open(group / name) for name in planned]


def _read_plan(path: Path) -> dict[str, str]:
    damaged = RequestError(f"{path} is damaged; remove it and start the missing runs again")
    if not path.is_file():
        if path.exists():
            raise damaged
        return {}
    try:
        runs = json.loads(path.read_bytes())["runs"]
        texts = {str(name): str(text) for name, text in runs.items()}
        trees = [tomllib.loads(text) for text in texts.values()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise damaged from None
    if any("/" in name or name in ("", ".", "..") for name in texts):
        raise damaged
    for tree in trees:
        config.build({key: value for key, value in tree.items() if key != "provenance"})
    return texts


@contextmanager
def _held(group: Path) -> Iterator[None]:
    # the lock is on the folder itself: it leaves no file behind
    with (
        open_file(group.resolve(), os.O_RDONLY | os.O_DIRECTORY) as descriptor,
        only_writer(descriptor, group),
    ):
        yield
