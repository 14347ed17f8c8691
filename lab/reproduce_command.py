"""`python -m lab reproduce`: the paper's tables and figures, our results, and a verdict on each."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slimfl.cli.output import Json, Place, aside, duration, show, show_json
from slimfl.cli.plain_help import PlainCommand, PlainGroup

if TYPE_CHECKING:
    from lab.reproduction.cells.cell import Cell
    from lab.reproduction.cells.status import Status
    from lab.reproduction.exhibits.exhibit import Exhibit

#: The command of `python -m lab reproduce WORDS` if the first word is no command.
DEFAULT = "make"
_HELP = ("-h", "--help")


class MakeByDefault(PlainGroup):
    """`python -m lab reproduce table3` is `python -m lab reproduce make table3`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command in where the first word is none."""
        if not args or args[0] not in (*self.commands, *_HELP):
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


reproduce = typer.Typer(
    cls=MakeByDefault,
    help="Reproduce the paper. `make` is the default command: `python -m lab reproduce table3` "
    "makes table III. `python -m lab reproduce make --help` lists its options.",
)

Cache = Annotated[Path, typer.Option(help="Folder for the runs; finished runs are not repeated.")]
Archive = Annotated[
    Path, typer.Option(help="Folder of packed runs, used if they have more rounds than the cache.")
]
CACHE, ARCHIVE = Path("reproduction/cells"), Path("results/cells")


#: Maximum size of results.json; typical ones have a tenth of this.
MOST_BYTES = 1 << 25


@reproduce.command(DEFAULT, cls=PlainCommand)
def make(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help="table1, table3 to table7, fig2 to fig7, choices, all of these (all), or vanilla.",
            show_default="all",
        ),
    ] = None,
    scale: Annotated[str, typer.Option(help="smoke, small, standard or paper.")] = "smoke",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the results.", show_default="reproduction/SCALE"),
    ] = None,
    cache: Cache = CACHE,
    archive: Archive = ARCHIVE,
    workers: Annotated[
        int | None,
        typer.Option(help="Number of parallel runs.", min=1, max=1024, show_default="one per core"),
    ] = None,
    on: Place = "local",
    as_is: Annotated[
        bool, typer.Option("--as-is", help="Run nothing; show the existing runs.")
    ] = False,
    check: Annotated[
        Path | None,
        typer.Option(help="Compare with an earlier results.json.", show_default="no comparison"),
    ] = None,
    json: Json = False,
) -> None:
    """Recreate tables and figures of the paper and compare them.

    Each gets a verdict.
    """
    from lab.reproduction.cells.scale import scale as named
    from lab.reproduction.reproduce import missing, recipes, unfinished, write
    from lab.reproduction.reproduce import reproduce as run
    from slimfl.cli.jobs_bar import jobs_bar

    chosen, size = recipes(what or ["all"]), named(scale)
    before = None if check is None else _earlier(check)
    folder = out or Path("reproduction") / scale
    with jobs_bar(aside()) as watch:
        exhibits = run(
            chosen,
            size,
            cache,
            on=on,
            workers=workers,
            run=not as_is,
            watch=watch,
            archive=archive,
        )
    words = [*(what or ["all"]), "--scale", scale, *(["--as-is"] if as_is else [])]
    absent = missing(chosen, size, cache)
    lacking = unfinished(chosen, size, absent)
    command = shlex.join(["python", "-m", "lab", "reproduce", *words])
    document = write(exhibits, size, folder, command, lacking, absent)
    compared = None if check is None else _compared(document, before, check)
    if json:
        show_json(document)
    else:
        for exhibit in exhibits:
            show(*_rendered(exhibit))
        show(_verdicts(exhibits))
    if lacking:
        aside().print(lacking, highlight=False)
    aside().print(f"page: {folder / 'index.html'}", highlight=False, soft_wrap=True)
    if check is not None and compared is not None:
        _judge(*compared, check)


@reproduce.command(cls=PlainCommand)
def status(
    what: Annotated[
        list[str] | None, typer.Argument(help="Tables and figures.", show_default="all")
    ] = None,
    scale: Annotated[str, typer.Option(help="smoke, small, standard or paper.")] = "standard",
    cache: Cache = CACHE,
    archive: Archive = ARCHIVE,
    workers: Annotated[
        int | None,
        typer.Option(help="Number of parallel runs.", min=1, show_default="one per core"),
    ] = None,
    json: Json = False,
) -> None:
    """Show the progress of the runs and the time left."""
    from lab.reproduction.cells.scale import scale as named
    from lab.reproduction.cells.status import status as look
    from lab.reproduction.reproduce import cells_of, recipes
    from slimfl.engines.cores import available_cores

    cells = cells_of(recipes(what or ["all"]), named(scale))
    found = look(scale, cells, cache, archive, workers or available_cores())
    show_status(found, json)


@reproduce.command(cls=PlainCommand)
def pack(
    cache: Cache = CACHE,
    archive: Annotated[Path, typer.Option(help="Folder for the packed runs.")] = ARCHIVE,
    json: Json = False,
) -> None:
    """Pack the runs of `standard` and `paper` into the archive.

    Unfinished runs are packed too.
    """
    from lab.reproduction.cells.scale import scale as named
    from lab.reproduction.reproduce import every_cell

    show_packed(every_cell(named("paper")), cache, archive, json)


def show_packed(cells: "Sequence[Cell]", cache: Path, archive: Path, json: bool) -> None:
    """Pack some runs and say which."""
    from lab.reproduction.cells.archive import find
    from lab.reproduction.cells.archive import pack as put
    from slimfl.errors import RequestError

    if not cache.is_dir():
        raise RequestError(f"there is no folder {cache}; give the folder of the runs with --cache")
    packed = [(cell.name, entry.rounds) for cell in cells if (entry := put(cell, cache, archive))]
    there = [entry for cell in cells if (entry := find(archive, cell))]
    megabytes = sum(entry.size_bytes for entry in there) / 1e6
    if json:
        document = {"packed": dict(packed), "cells": len(there), "megabytes": megabytes}
        show_json(document)
        return
    for name, rounds in packed:
        show(f"{name}: {rounds} rounds")
    runs = "1 run" if len(there) == 1 else f"{len(there)} runs"
    show(f"{len(packed)} packed; {archive} has {runs} in {megabytes:.1f} MB")


@reproduce.command(cls=PlainCommand)
def verify(
    cells: Annotated[int, typer.Option(help="Number of runs, chosen at random.", min=1)] = 2,
    rounds: Annotated[
        int, typer.Option(help="Number of rounds to repeat, from the first.", min=1)
    ] = 2,
    archive: Annotated[Path, typer.Option(help="Folder of packed runs.")] = ARCHIVE,
    json: Json = False,
) -> None:
    """Repeat the first rounds of archived runs and compare."""
    from lab.reproduction.cells.scale import scale as named
    from lab.reproduction.cells.verify import archived, choose
    from lab.reproduction.cells.verify import verify as again
    from lab.reproduction.reproduce import every_cell
    from slimfl.errors import RunError

    results = []
    for cell, entry in choose(archived(archive, every_cell(named("paper"))), cells):
        aside().print(f"running {cell.name}", highlight=False, soft_wrap=True)
        results.append(again(cell, entry, rounds))
    differing = [each for each in results if each.difference]
    if json:
        show_json({"cells": [each.as_json() for each in results]})
    else:
        for each in results:
            verdict = "differs" if each.difference else "same"
            rounds_run = "1 round" if each.rounds == 1 else f"{each.rounds} rounds"
            show(f"{each.name}: {verdict} in {rounds_run}, {each.measure.value}")
    if differing:
        told = "; ".join(f"{each.name}, {each.difference}" for each in differing)
        raise RunError(f"{len(differing)} of {len(results)} runs differ from {archive}: {told}")


def show_status(found: "Status", json: bool) -> None:
    """How far runs are, and the time left."""
    if json:
        show_json(found.as_json())
    else:
        show(_status_table(found), _time_left(found))


def _status_table(found: "Status") -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("run")
    for heading in ("rounds", "seconds per round", "time left"):
        table.add_column(heading, justify="right")
    for each in found.cells:
        pace = "" if each.seconds_per_round is None else f"{each.seconds_per_round:.1f}"
        left = "unknown" if each.seconds_left is None else duration(each.seconds_left)
        table.add_row(
            each.name,
            f"{each.rounds_done} of {each.rounds}",
            pace if each.measured or not pace else f"about {pace}",
            left if each.rounds_done < each.rounds else "",
        )
    return table


def _time_left(found: "Status") -> str:
    left = found.seconds_left
    said = "unknown until a run has been timed" if left is None else f"about {duration(left)}"
    runs = "run" if found.workers == 1 else "runs"
    return (
        f"{found.finished} of {len(found.cells)} runs of {found.scale} are finished. Time left "
        f"with {found.workers} parallel {runs}: {said}."
    )


def _earlier(path: Path) -> Any:
    """The results of an earlier reproduction, read before the work begins."""
    from json import loads

    from slimfl.errors import RequestError
    from slimfl.files import read_regular

    try:
        return loads(read_regular(path, MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        raise RequestError(
            f"{path} is not the results.json of a reproduction; give another --check"
        ) from None


def _compared(document: dict[str, Any], before: Any, path: Path) -> tuple[list[str], bool]:
    """The differences, and True if every digit has to agree."""
    from lab.reproduction.judging.check import differences, same_engine
    from slimfl.errors import RequestError

    try:
        return differences(document, before), same_engine(document, before)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise RequestError(
            f"{path} is not the results.json of a reproduction: {error!r}; give another --check"
        ) from None


def _judge(found: list[str], exact: bool, path: Path) -> None:
    from slimfl.errors import RunError

    how = "to the last digit" if exact else "within the spread, because the engines differ"
    if found and exact:
        raise RunError(f"{len(found)} differences from {path}: " + "; ".join(found))
    for line in found:
        aside().print(f"differs: {line}", highlight=False, soft_wrap=True)
    if not found:
        aside().print(f"agrees with {path} {how}", highlight=False, soft_wrap=True)


def _rendered(exhibit: "Exhibit") -> Iterator[Any]:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from lab.reproduction.page import printed

    table = Table(title=exhibit.title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, heading in enumerate(exhibit.table.headings):
        table.add_column(heading, justify="left" if number == 0 else "right")
    for row in exhibit.table.rows:
        table.add_row(*row)
    yield table
    for claim in exhibit.claims:
        seeds = printed.claim_seeds(
            {
                "seeds": claim.seeds,
                "seeds_planned": claim.seeds_planned,
                "verdict": str(claim.verdict),
            }
        )
        behind = f" ({seeds})" if seeds else ""
        yield Text.assemble("  ", (str(claim.verdict), "bold"), f"{behind}: {claim.text}")
        for each in (one.as_json() for one in claim.differences):
            yield Text(f"      {printed.pair(each)}: {printed.difference(each)}")
    yield ""


def _verdicts(exhibits: list["Exhibit"]) -> Any:
    from rich import box
    from rich.table import Table

    from lab.reproduction.page import printed

    table = Table(title="Verdicts", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("table or figure", "verdict", "agree", "order only", "differ"):
        table.add_column(heading)
    for exhibit in exhibits:
        counts = [
            sum(claim.verdict == verdict for claim in exhibit.claims)
            for verdict in ("agrees", "agrees in order only", "differs")
        ]
        basis = printed.rests_on(exhibit.as_json())
        verdict = f"{exhibit.verdict} ({basis})" if basis else str(exhibit.verdict)
        table.add_row(exhibit.title, verdict, *map(str, counts))
    return table
