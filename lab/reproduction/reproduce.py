"""From names to a folder: run what is missing, make the exhibits, write them.

    OUT/results.json        everything below as data, with commands, versions and seeds
    OUT/tables/NAME.csv     one table per exhibit, and the same as NAME.md
    OUT/tables/verdicts.csv every claim with its verdict, seeds and paired differences
    OUT/figures/NAME.png    one figure per exhibit where there is one, and the same as NAME.pdf
    OUT/index.html          the paper's claims, our tables and figures, and the verdicts

Runs are stored in a cache that all scales share.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lab.reproduction.cells import made_with
from lab.reproduction.cells.cell import Cell
from lab.reproduction.cells.gather import gather, seed_by_seed
from lab.reproduction.cells.scale import Scale
from lab.reproduction.exhibits import RECIPES
from lab.reproduction.exhibits.exhibit import Exhibit, Recipe, Table
from lab.reproduction.judging.reasons import reason
from lab.reproduction.judging.verdict import RULE
from lab.reproduction.page import printed
from lab.reproduction.page.document import write_page
from slimfl.errors import RequestError
from slimfl.report import save
from slimfl.report.atomic_write import atomic_write
from slimfl.runs.sweeps import Watcher, is_complete

#: Maximum number of unfinished runs that are named one by one.
MANY = 6


def recipes(names: Iterable[str]) -> list[Recipe]:
    """The exhibits of these names, in the paper's order; `all` is all but the studies."""
    asked = set(names) or {"all"}
    unknown = asked - {*RECIPES, "all"}
    if unknown:
        raise RequestError(
            f"there is no {', '.join(sorted(unknown))} in the paper; "
            f"choose among {', '.join(RECIPES)} or all"
        )
    return [
        recipe
        for name, recipe in RECIPES.items()
        if name in asked or ("all" in asked and not recipe.study)
    ]


def reproduce(
    chosen: Sequence[Recipe],
    scale: Scale,
    cache: Path,
    *,
    on: str = "local",
    workers: int | None = None,
    run: bool = True,
    watch: Watcher | None = None,
    archive: Path | None = None,
) -> list[Exhibit]:
    """Make the exhibits; without `run`, from existing runs, finished or not.

    Runs with more rounds in the archive than in the cache are taken from there.
    """
    cells = cells_of(chosen, scale)
    runs = gather(cells, cache, on=on, workers=workers, run=run, watch=watch, archive=archive)
    return [recipe.show(scale, runs) for recipe in chosen]


def missing(chosen: Sequence[Recipe], scale: Scale, cache: Path) -> list[dict[str, Any]]:
    """Every run that lacks rounds: its name, its rounds, and the exhibits that need it."""
    needs = {recipe.name: set(recipe.cells(scale)) for recipe in chosen}
    absent = []
    for cell in cells_of(chosen, scale):
        job = cell.job(cache)
        if not is_complete(job):
            absent.append(
                {
                    "run": job.name,
                    "rounds_done": min(job.rounds_done, job.rounds),
                    "rounds": job.rounds,
                    "needed_for": [name for name, cells in needs.items() if cell in cells],
                }
            )
    return absent


def unfinished(chosen: Sequence[Recipe], scale: Scale, lacking: Sequence[dict[str, Any]]) -> str:
    """What the exhibits lack, in a sentence or two; empty if all runs are finished."""
    if not lacking:
        return ""
    runs = len(cells_of(chosen, scale))
    begun = [each for each in lacking if each["rounds_done"]]
    reached = ", ".join(
        f"{each['run'].rpartition('-')[0]} at round {each['rounds_done']} of {each['rounds']}"
        for each in begun[:MANY]
    )
    more = f" and {len(begun) - MANY} more" if len(begun) > MANY else ""
    went = f" In progress: {reached}{more}." if begun else ""
    return f"{runs - len(lacking)} of {runs} runs are finished.{went}"


def every_cell(scale: Scale) -> list[Cell]:
    """The runs of all exhibits and studies."""
    return cells_of(list(RECIPES.values()), scale)


def write(
    exhibits: Sequence[Exhibit],
    scale: Scale,
    out: Path,
    command: str,
    lacking: str = "",
    missing: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Write tables, figures, data and page; returns the data.

    `lacking` is a sentence on what is unfinished, `missing` names every such run.
    """
    written = []
    for exhibit in exhibits:
        _text(out / "tables" / f"{exhibit.name}.csv", as_csv(exhibit.table))
        _text(out / "tables" / f"{exhibit.name}.md", as_markdown(exhibit.table))
        figures = []
        if exhibit.figure is not None:
            for kind in ("png", "pdf"):
                save(exhibit.figure, out / "figures" / f"{exhibit.name}.{kind}")
            figures.append(f"figures/{exhibit.name}.png")
        told = exhibit.as_json()
        for claim, words in zip(exhibit.claims, told["claims"], strict=True):
            words["reason"] = reason(claim, scale)
        written.append({**told, "figures": figures})
    verdicts = verdict_table(written)
    _text(out / "tables" / "verdicts.csv", as_csv(verdicts))
    _text(out / "tables" / "verdicts.md", as_markdown(verdicts))
    document = {
        "scale": scale.name,
        "command": command,
        "shortened": scale.shortened,
        "unfinished": lacking,
        "missing": list(missing),
        "versions": made_with.versions(),
        "engine": f"{made_with.engine()}, weights drawn by {made_with.weights()}",
        "seeds": list(range(scale.seeds)),
        "rule": RULE,
        "exhibits": written,
    }
    _text(out / "results.json", json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    write_page(document, out)
    return document


def verdict_table(exhibits: Sequence[dict[str, Any]]) -> Table:
    """Every claim with its verdict, the seeds behind it and the differences between methods."""
    rows = [
        [
            exhibit["title"].partition(":")[0],
            claim["text"],
            claim["verdict"],
            printed.claim_seeds(claim),
            "; ".join(
                f"{printed.pair(each)}: {printed.difference(each)}" for each in claim["differences"]
            ),
            claim["reason"],
        ]
        for exhibit in exhibits
        for claim in exhibit["claims"]
    ]
    headings = ["table or figure", "claim", "verdict", "seeds", "paired differences", "reason"]
    return Table(headings, rows)


def as_csv(table: Table) -> str:
    """A table for a spreadsheet."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([table.headings, *table.rows])
    return text.getvalue()


def as_markdown(table: Table) -> str:
    """A table as Markdown."""
    rows = [table.headings, ["---"] * len(table.headings), *table.rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def cells_of(chosen: Sequence[Recipe], scale: Scale) -> list[Cell]:
    """Every run once: seed 0 of all settings first, so that early results cover all settings."""
    return seed_by_seed([cell for recipe in chosen for cell in recipe.cells(scale)])


def _text(path: Path, text: str) -> None:
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
