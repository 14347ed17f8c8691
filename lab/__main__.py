"""`python -m lab`: reproduce the paper, answer studies, run and judge planned questions."""

import json as jsonlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lab import archive as archives
from lab import plan as plans
from lab.scale import names as scales
from lab.scale import scale, study_scale
from slimfl.cli.app import main
from slimfl.cli.output import Json, Place, aside, show, show_json, table
from slimfl.cli.plain_help import PlainCommand, PlainGroup
from slimfl.errors import RequestError, RunError
from slimfl.files import read_regular

if TYPE_CHECKING:
    from lab.cell import Cell
    from lab.make import Made
    from lab.question import Question

#: The command of `python -m lab reproduce WORDS` if the first word is no command.
DEFAULT = "make"
#: Maximum size of results.json; typical ones have a tenth of this.
MOST_BYTES = 1 << 25
PLAN_CACHE, PLAN_RESULTS = Path("lab/cells"), Path("docs/results/plans")

Names = Annotated[list[str] | None, typer.Argument(help="Names; all when absent.")]
ScaleName = Annotated[str, typer.Option("--scale", help="How much work.")]
CacheFolder = Annotated[
    Path, typer.Option("--cache", help="Folder for the runs; finished runs are not repeated.")
]
ArchiveFolder = Annotated[
    Path,
    typer.Option(
        "--archive", help="Folder of packed runs, used if they have more rounds than the cache."
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(help="Number of parallel runs.", min=1, max=1024, show_default="one per core"),
]


class MakeByDefault(PlainGroup):
    """`python -m lab reproduce table3` is `python -m lab reproduce make table3`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command in where the first word is none."""
        if not args or args[0] not in (*self.commands, "-h", "--help"):
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


def commands(kind: str, folder: str, help: str, sized: Callable[[str], Any]) -> typer.Typer:
    """The commands for one kind of question: make, status, pack and verify.

    Args:
        kind: Their name on the command line.
        folder: Where results go, and where the archive lies below `results`.
        help: The group's help.
        sized: A scale by its name.
    """
    app = typer.Typer(cls=MakeByDefault, help=help)
    cache_folder, archive_folder = Path(folder) / "cells", archives.ROOT / ARCHIVES[kind]

    @app.command(DEFAULT, cls=PlainCommand)
    def make(
        names: Names = None,
        size: ScaleName = "smoke",
        out: Annotated[
            Path | None,
            typer.Option(help="Folder for the results.", show_default=f"{folder}/SCALE"),
        ] = None,
        cache: CacheFolder = cache_folder,
        archive: ArchiveFolder = archive_folder,
        workers: Workers = None,
        on: Place = "local",
        as_is: Annotated[
            bool, typer.Option("--as-is", help="Run nothing; answer from the existing runs.")
        ] = False,
        check: Annotated[
            Path | None,
            typer.Option(help="Compare with an earlier results.json.", show_default="none"),
        ] = None,
        json: Json = False,
    ) -> None:
        """Run what is missing and answer: tables, figures, verdicts and a page."""
        from lab.make import make as answered
        from lab.make import write
        from slimfl.runs.progress import watching

        questions, asked = _questions(kind, names), sized(size)
        before = None if check is None else _earlier(check)
        target = out or Path(folder) / "-".join([*(names or []), size])
        with watching() as watch:
            made = answered(questions, asked, cache, archive, on=on, workers=workers,
                            run=not as_is, watch=watch)  # fmt: skip
        words = [kind, *(names or ["all"]), "--scale", size, *(["--as-is"] if as_is else [])]
        document = write(made, target, shlex.join(["python", "-m", "lab", *words]))
        if json:
            show_json(document)
        else:
            _show(made)
        if made.lacking:
            aside().print(made.lacking, highlight=False)
        aside().print(f"page: {target / 'index.html'}", highlight=False, soft_wrap=True)
        if check is not None:
            _compare(document, before, check)

    @app.command(cls=PlainCommand)
    def status(
        names: Names = None,
        size: ScaleName = "standard",
        cache: CacheFolder = cache_folder,
        archive: ArchiveFolder = archive_folder,
        workers: Workers = None,
        json: Json = False,
    ) -> None:
        """Show the progress of the runs and the time left."""
        from lab.make import cells_of
        from lab.progress import rows, words
        from lab.progress import status as look
        from slimfl.engines.machine import available_cores

        cells = cells_of(_questions(kind, names), sized(size))
        found = look(size, cells, cache, archive, workers or available_cores())
        if json:
            show_json(found)
        else:
            show(table(rows(found)), words(found))

    @app.command(cls=PlainCommand)
    def pack(
        names: Names = None,
        cache: CacheFolder = cache_folder,
        archive: ArchiveFolder = archive_folder,
        json: Json = False,
    ) -> None:
        """Pack the runs of the largest scale, also unfinished ones, into the archive."""
        _pack(_every_cell(kind, sized, names), cache, archive, json)

    @app.command(cls=PlainCommand)
    def verify(
        cells: Annotated[int, typer.Option(help="Number of runs, chosen at random.", min=1)] = 2,
        rounds: Annotated[int, typer.Option(help="Number of first rounds to repeat.", min=1)] = 2,
        archive: ArchiveFolder = archive_folder,
        json: Json = False,
    ) -> None:
        """Repeat the first rounds of archived runs and compare."""
        from lab.verify import archived, choose
        from lab.verify import verify as again

        results = []
        for cell, entry in choose(archived(archive, _every_cell(kind, sized)), cells):
            aside().print(f"running {cell.name}", highlight=False, soft_wrap=True)
            results.append(again(cell, entry, rounds))
        differing = [each for each in results if each.difference]
        if json:
            show_json({"cells": [each.as_json() for each in results]})
        else:
            for each in results:
                verdict = "differs" if each.difference else "same"
                show(f"{each.cell}: {verdict} in {each.rounds} rounds, {each.compared}")
        if differing:
            told = "; ".join(f"{each.cell}, {each.difference}" for each in differing)
            raise RunError(f"{len(differing)} of {len(results)} runs differ from {archive}: {told}")

    return app


#: Below `results`.
ARCHIVES = {"reproduce": "cells", "study": "studies"}
app = typer.Typer(name="lab", help=__doc__, no_args_is_help=True, cls=PlainGroup)
app.add_typer(
    commands("reproduce", "reproduction",
             "Reproduce the paper: table1, table3 to table7, fig2 to fig7, budget (its own "
             "comparison), choices, all of these (all), or vanilla; at the scales smoke, small, "
             "standard or paper. `make` is the default command.", scale),
    name="reproduce",
)  # fmt: skip
app.add_typer(
    commands("study", "studies",
             "Answer our own questions: regimes, rivals, widths, local-work and split; at the "
             "scales smoke or standard. `make` is the default command.", study_scale),
    name="study",
)  # fmt: skip


def _catalogue(kind: str) -> Mapping[str, "Question"]:
    from lab import catalogue

    return {"reproduce": catalogue.EXHIBITS, "study": catalogue.STUDIES}[kind]


def _questions(kind: str, names: Sequence[str] | None) -> list["Question"]:
    from lab.catalogue import chosen

    return chosen(_catalogue(kind), names or ["all"])


def _every_cell(
    kind: str, sized: Callable[[str], Any], names: Sequence[str] | None = None
) -> list["Cell"]:
    """The runs of the largest scale, the last in the file."""
    from lab.make import cells_of

    questions = _questions(kind, names) if names else list(_catalogue(kind).values())
    return cells_of(questions, sized(scales(kind)[-1]))


def _pack(cells: Sequence["Cell"], cache: Path, archive: Path, json: bool) -> None:
    """Pack some runs and say which."""
    if not cache.is_dir():
        raise RequestError(f"there is no folder {cache}; give the folder of the runs with --cache")
    packed = {c.name: e.rounds for c in cells if (e := archives.pack(c, cache, archive))}
    there = [entry for cell in cells if (entry := archives.find(archive, cell))]
    megabytes = sum(entry.size_bytes for entry in there) / 1e6
    if json:
        show_json({"packed": packed, "cells": len(there), "megabytes": megabytes})
        return
    for name, rounds in packed.items():
        show(f"{name}: {rounds} rounds")
    show(f"{len(packed)} packed; {archive} has {len(there)} runs in {megabytes:.1f} MB")


def _earlier(path: Path) -> Any:
    """The results of an earlier answer, read before the work begins."""
    try:
        return jsonlib.loads(read_regular(path, MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        raise RequestError(f"{path} is no results.json; give another --check") from None


def _compare(document: Mapping[str, Any], before: Any, path: Path) -> None:
    from lab.make import differences, same_engine

    try:
        found, exact = differences(document, before), same_engine(document, before)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise RequestError(f"{path} is no results.json: {error!r}; give another --check") from None
    if found and exact:
        raise RunError(f"{len(found)} differences from {path}: " + "; ".join(found))
    for line in found:
        aside().print(f"differs: {line}", highlight=False, soft_wrap=True)
    if not found:
        how = "to the last digit" if exact else "within the intervals, because the engines differ"
        aside().print(f"agrees with {path} {how}", highlight=False, soft_wrap=True)


def _show(made: "Made") -> None:
    from rich.text import Text

    for question in made.questions:
        answer = made.answers[question.name]
        for each in answer.tables:
            rows = [dict(zip(_apart(each.headings), row, strict=True)) for row in each.rows]
            show(table(rows, each.title))
        for claim in answer.claims:
            early = " (preliminary)" if claim.is_preliminary else ""
            verdict = (f"{claim.verdict}{early}", "bold")
            show(Text.assemble("  ", verdict, f": {claim.text}: {claim.said or 'not run'}"))
        for sentence in answer.sentences:
            show(Text(sentence))


def _apart(headings: Sequence[str]) -> list[str]:
    """Headings that are all different, as the keys of a row must be: spaces show nothing."""
    return [name + " " * headings[:i].count(name) for i, name in enumerate(headings)]


# Planned questions

plan_app = typer.Typer(help="Questions that are planned before their runs.", no_args_is_help=True)
app.add_typer(plan_app, name="plan")


@plan_app.command("run")
def plan_run(names: Names = None, cache: CacheFolder = PLAN_CACHE, workers: Workers = None) -> None:
    """Run what is missing of some plans, in the order given."""
    from slimfl.runs.sweeps import run_jobs

    for planned in _plans(names, cache):
        commit = planned.committed()
        missing = [run.cell for run in planned.runs if not run.is_finished(cache)]
        for cell in missing:
            plans.stamp(planned, commit, cell, cache)
        run_jobs((cell.job(cache) for cell in missing), "local", workers=workers)


@plan_app.command("status")
def plan_status(names: Names = None, cache: CacheFolder = PLAN_CACHE) -> None:
    """Say how many runs are finished."""
    for planned in _plans(names, cache):
        show(f"{planned.name}: {len(planned.finished(cache))} of {len(planned.runs)} runs")


@plan_app.command("pack")
def plan_pack(names: Names = None, cache: CacheFolder = PLAN_CACHE) -> None:
    """Put the finished runs of some plans into the repository's archive."""
    for planned in _plans(names, cache):
        cells = planned.finished(cache)
        archives.pack_plan(planned.archive, cells, cache)
        show(f"{planned.name}: {len(cells)} runs in {planned.archive}")


@plan_app.command("answer")
def plan_answer(
    names: Names = None,
    cache: CacheFolder = PLAN_CACHE,
    results: Annotated[Path, typer.Option(help="Folder for what the runs say.")] = PLAN_RESULTS,
) -> None:
    """Judge the finished runs of some plans and write what they say as JSON."""
    from lab.planned import answer, document

    for planned in _plans(names, cache):
        said = document(answer(planned, cache))
        path = results / f"{planned.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(jsonlib.dumps(said, indent=1) + "\n", encoding="utf-8")
        show(f"{planned.name}: {said['finished']} of {said['planned']} runs, in {path}")


def _plans(names: Sequence[str] | None, cache: Path) -> list[plans.NamedPlan]:
    """The plans, with what the archive has of their runs in the cache."""
    loaded = [plans.load(name) for name in names or plans.names()]
    for planned in loaded:
        missing = [run.cell for run in planned.runs if not run.is_finished(cache)]
        archives.unpack_plan(planned.archive, missing, cache)
    return loaded


if __name__ == "__main__":
    main(app, "lab")
