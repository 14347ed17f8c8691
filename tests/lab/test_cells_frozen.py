"""Names of runs are frozen: what is archived, running or planned must be found by every version.

`cells.json` was made before the questions were rewritten. It has the experiment of every archived
and planned run by its name, and for every question at every scale which runs it asks for.
"""

import hashlib
import json
from pathlib import Path

import pytest

from lab import plan
from lab.catalogue import EXHIBITS, STUDIES
from lab.cell import PAPERS_LINK, Cell
from lab.scale import scale as scale_of
from lab.scale import study_scale
from slimfl import experiment as config

FROZEN = json.loads(Path(__file__).with_name("cells.json").read_text())
ARCHIVES = [Path(__file__).parents[2] / "results" / name for name in ("cells", "studies")]


def cells_of(question):
    name, _, scale = question.partition(" ")
    if name == "plan":
        return [run.cell for run in plan.load(scale).runs]
    if name in EXHIBITS:
        return EXHIBITS[name].cells(scale_of(scale))
    return STUDIES[name].cells(study_scale(scale))


def test_a_run_has_the_same_name_as_ever():
    made = {
        # the table leaves out what was the default then, and rates were equal
        name: Cell(config.build({**tree, "radio": {**PAPERS_LINK, **tree.get("radio", {})}})).name
        for name, tree in FROZEN["runs"].items()
    }
    assert [name for name, now in made.items() if name != now] == []


def test_every_archived_run_is_in_the_table():
    archived = {folder.name for archive in ARCHIVES for folder in archive.iterdir()}
    assert archived <= set(FROZEN["runs"])


@pytest.mark.parametrize("question", FROZEN["asked"])
def test_a_question_asks_for_the_same_runs_as_ever(question):
    names = sorted({f"{cell.name} {cell.rounds}" for cell in cells_of(question)})
    digest = hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
    assert {"runs": len(names), "sha256": digest} == FROZEN["asked"][question]
