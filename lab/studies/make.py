"""From a study's name to a folder: run what is missing, answer, write it down.

OUT/results.json        the answer, the tables and the numbers behind them, and the command
OUT/tables/NAME.csv     every table, and the same as NAME.md
OUT/figures/NAME.png    every picture, and the same as NAME.pdf
OUT/index.html          all of it on one page
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.reproduction.cells import made_with
from lab.reproduction.cells.cell import Cell
from lab.reproduction.cells.gather import gather, seed_by_seed
from lab.reproduction.reproduce import as_csv, as_markdown
from lab.studies.page import page
from lab.studies.scale import StudyScale
from lab.studies.study import Answer, Study
from slimfl.report import save
from slimfl.report.atomic_write import atomic_write
from slimfl.runs.sweeps import Watcher, is_complete


@dataclass(frozen=True)
class Made:
    """The answer, and which runs it still lacks."""

    study: Study
    scale: StudyScale
    answer: Answer
    cells: list[Cell]
    lacking: list[str]
    """Runs that are not at their end, by name."""
    processor_s: float
    """What the runs took, training and testing, on one core each."""


def cells_of(studies: Sequence[Study], scale: StudyScale) -> list[Cell]:
    """The runs of some studies."""
    return seed_by_seed([cell for study in studies for cell in study.cells(scale)])


def make(
    study: Study,
    scale: StudyScale,
    cache: Path,
    *,
    on: str = "local",
    workers: int | None = None,
    run: bool = True,
    watch: Watcher | None = None,
    archive: Path | None = None,
) -> Made:
    """Answer a study; without `run`, from the runs that are there."""
    cells = cells_of([study], scale)
    runs = gather(cells, cache, on=on, workers=workers, run=run, watch=watch, archive=archive)
    lacking = [job.name for cell in cells if not is_complete(job := cell.job(cache))]
    spent = sum(
        line.seconds.training + line.seconds.evaluation
        for record in runs.values()
        for line in record.lines
    )
    return Made(study, scale, study.answer(scale, runs), cells, lacking, spent)


def write(made: Made, out: Path, command: str) -> dict[str, Any]:
    """Write tables, pictures, data and page; returns the data."""
    answer = made.answer
    for titled in answer.tables:
        _text(out / "tables" / f"{titled.name}.csv", as_csv(titled.table))
        _text(out / "tables" / f"{titled.name}.md", as_markdown(titled.table))
    for picture in answer.pictures:
        for kind in ("png", "pdf"):
            save(picture.figure, out / "figures" / f"{picture.name}.{kind}")
    document = {
        "study": made.study.name,
        "title": made.study.title,
        "question": made.study.question,
        "scale": made.scale.name,
        "command": command,
        "what_is_run": made.scale.words,
        "answer": answer.sentences,
        "tables": [
            {
                "name": each.name,
                "title": each.title,
                "headings": each.table.headings,
                "rows": each.table.rows,
            }
            for each in answer.tables
        ],
        "pictures": [
            {"file": f"figures/{each.name}.png", "caption": each.caption}
            for each in answer.pictures
        ],
        "data": answer.data,
        "runs": len(made.cells),
        "lacking": made.lacking,
        "processor_s": round(made.processor_s),
        "versions": made_with.versions(),
        "engine": made_with.engine(),
    }
    _text(out / "results.json", json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    _text(out / "index.html", page(document, out))
    return document


def _text(path: Path, text: str) -> None:
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
