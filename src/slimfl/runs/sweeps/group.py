"""A folder of runs, created so that a kill at any moment loses none of them.

The contents of every run's experiment.toml are first written atomically to one file, plan.json.
Then the run folders are created, and the file is removed. If it is found later, the remaining
folders are created from it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from slimfl import experiment as config
from slimfl.errors import RequestError
from slimfl.files import (
    own_folder,
    parse_toml,
    read_json,
    remove_leftovers,
    sync_folder,
    write_atomically,
)
from slimfl.round import RunFolder
from slimfl.runs.storage.locks import only_writer, open_file
from slimfl.runs.storage.run_folder import (
    EXPERIMENT,
    disk_errors,
    resume_command,
)

PLAN = "plan.json"


class _Plan(BaseModel):
    model_config = ConfigDict(strict=True)

    runs: dict[str, str]


@contextmanager
def new_group(group: Path) -> Iterator[None]:
    """Create a folder for runs if necessary, and keep other processes out of it."""
    with disk_errors(group, "and give the same command again"):
        group.mkdir(parents=True, exist_ok=True)
    with _held(group):
        yield


@contextmanager
def existing_group(group: Path) -> Iterator[list[RunFolder]]:
    """Keep other processes out of a group; gives its runs, including planned ones."""
    if (group / EXPERIMENT).is_file():
        yield [RunFolder.open(group)]  # a single run, which has its own lock
        return
    if not group.exists():
        raise RequestError(f"there is no folder {group}; give the path of a run folder")
    if not group.is_dir():
        raise RequestError(f"{group} is a file; give the folder of the run")
    with _held(group):
        # of killed processes; a link below a group may lead to other people's files
        for folder in (group, *(at for at in group.iterdir() if not at.is_symlink())):
            remove_leftovers(folder, ".+")
        make_planned(group)
        inside = [at for at in sorted(group.iterdir()) if (at / EXPERIMENT).is_file()]
        for at in inside:
            own_folder(at)
        runs = [RunFolder(at) for at in inside]
        if not runs:
            raise RequestError(
                f"{group} is not a run folder and contains none, so there is nothing to resume; "
                "use `slimfl run`"
            )
        yield runs


def check_free(group: Path, names: Mapping[str, object]) -> None:
    """Refuse a folder that already contains one of these runs, or is a run itself."""
    if (group / EXPERIMENT).exists():
        raise RequestError(f"{group} is a single run, not a folder of runs; choose another --out")
    if (group / PLAN).exists() or any((group / name / EXPERIMENT).exists() for name in names):
        raise RequestError(
            f"{group} already has these runs; continue them with `{resume_command(group)}`, or "
            "choose another --out"
        )


def write_plan(group: Path, texts: Mapping[str, str]) -> None:
    """Write the plan: the names of the runs and the contents of their experiment.toml."""
    check_free(group, texts)
    with disk_errors(group, "and give the same command again"):
        write_atomically(group / PLAN, json.dumps({"runs": texts}).encode())


def make_planned(group: Path) -> list[RunFolder]:
    """Create the missing run folders of a plan, if there is a plan."""
    with disk_errors(group, f"then `{resume_command(group)}`"):
        planned = _read_plan(group / PLAN)
        for name, text in planned.items():
            own_folder(group / name)
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
        texts = _Plan.model_validate(read_json(path)).runs
        trees = [parse_toml(text) for text in texts.values()]
        for name in texts:
            os.fsencode(name)  # refuses half of a pair of characters
    except (OSError, ValueError):
        raise damaged from None
    if any(re.search("[/\0]", name) or name in ("", ".", "..") for name in texts):
        raise damaged
    for tree in trees:
        config.build({key: value for key, value in tree.items() if key != "provenance"})
    return texts


@contextmanager
def _held(group: Path) -> Iterator[None]:
    # lock the folder itself, which leaves no file behind
    with (
        open_file(group.resolve(), os.O_RDONLY | os.O_DIRECTORY) as descriptor,
        only_writer(descriptor, group),
    ):
        yield
