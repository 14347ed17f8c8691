"""`python -m lab study`: questions of our own, answered by many runs."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lab.reproduce_command import MakeByDefault, show_status
from slimfl.cli.output import Json, Place, aside, show, show_json
from slimfl.cli.plain_help import PlainCommand

if TYPE_CHECKING:
    from lab.studies.make import Made

study = typer.Typer(
    cls=MakeByDefault,
    help="Answer a question by many runs.\n\nThe studies are regimes, rivals, widths, local-work "
    "and split. `make` is the default command: `python -m lab study rivals` answers one. `python "
    "-m lab study make --help` lists its options.",
)

Name = Annotated[str, typer.Argument(help="regimes, rivals, widths, local-work or split.")]
Names = Annotated[
    list[str] | None,
    typer.Argument(
        help="regimes, rivals, widths, local-work or split.", show_default="all of them"
    ),
]
Scale = Annotated[str, typer.Option(help="smoke or standard.")]
Cache = Annotated[Path, typer.Option(help="Folder for the runs; finished runs are not repeated.")]
Archive = Annotated[
    Path, typer.Option(help="Folder of packed runs, used if they have more rounds than the cache.")
]
CACHE, ARCHIVE = Path("studies/cells"), Path("results/studies")


@study.command(cls=PlainCommand)
def make(
    name: Name,
    scale: Scale = "smoke",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the results.", show_default="studies/NAME-SCALE"),
    ] = None,
    cache: Cache = CACHE,
    archive: Archive = ARCHIVE,
    workers: Annotated[
        int | None,
        typer.Option(help="Runs at a time.", min=1, max=1024, show_default="one per core"),
    ] = None,
    on: Place = "local",
    as_is: Annotated[
        bool, typer.Option("--as-is", help="Run nothing: answer from the runs that are there.")
    ] = False,
    json: Json = False,
) -> None:
    """Answer a study: tables, pictures and a page."""
    from lab.studies import study as by_name
    from lab.studies.make import make as answer
    from lab.studies.make import write
    from lab.studies.scale import scale as named
    from slimfl.cli.jobs_bar import jobs_bar

    chosen, size = by_name(name), named(scale)
    folder = out or Path("studies") / f"{name}-{scale}"
    with jobs_bar(aside()) as watch:
        made = answer(
            chosen,
            size,
            cache,
            on=on,
            workers=workers,
            run=not as_is,
            watch=watch,
            archive=archive,
        )
    words = [
        "python",
        "-m",
        "lab",
        "study",
        name,
        "--scale",
        scale,
        *(["--as-is"] if as_is else []),
    ]
    document = write(made, folder, shlex.join(words))
    if json:
        show_json(document)
    else:
        _show(made)
    if made.lacking:
        aside().print(f"{len(made.lacking)} of {len(made.cells)} runs are not finished.")
    aside().print(f"page: {folder / 'index.html'}", highlight=False, soft_wrap=True)


@study.command(cls=PlainCommand)
def status(
    names: Names = None,
    scale: Scale = "standard",
    cache: Cache = CACHE,
    archive: Archive = ARCHIVE,
    workers: Annotated[
        int | None, typer.Option(help="Runs at a time.", min=1, show_default="one per core")
    ] = None,
    json: Json = False,
) -> None:
    """Say how far the runs are, and how long the rest will take."""
    from lab.reproduction.cells.status import status as look
    from lab.studies import STUDIES
    from lab.studies import study as by_name
    from lab.studies.make import cells_of
    from lab.studies.scale import scale as named
    from slimfl.engines.cores import available_cores

    cells = cells_of([by_name(name) for name in names or STUDIES], named(scale))
    found = look(scale, cells, cache, archive, workers or available_cores())
    show_status(found, json)


@study.command(cls=PlainCommand)
def pack(
    names: Names = None,
    cache: Cache = CACHE,
    archive: Annotated[Path, typer.Option(help="Folder to pack into.")] = ARCHIVE,
    json: Json = False,
) -> None:
    """Pack the runs of `standard` into the archive.

    Unfinished runs are packed too.
    """
    from lab.reproduce_command import show_packed
    from lab.studies import STUDIES
    from lab.studies import study as by_name
    from lab.studies.make import cells_of
    from lab.studies.scale import scale as named

    cells = cells_of([by_name(name) for name in names or STUDIES], named("standard"))
    show_packed(cells, cache, archive, json)


def _show(made: "Made") -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    for titled in made.answer.tables:
        table: Any = Table(
            title=titled.title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
        )
        for number, heading in enumerate(titled.table.headings):
            table.add_column(heading, justify="left" if number == 0 else "right")
        for row in titled.table.rows:
            table.add_row(*row)
        show(table)
    for sentence in made.answer.sentences:
        show(Text(sentence))
