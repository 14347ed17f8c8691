"""`slimfl reproduce`: the paper's tables and figures, ours beside them, and a verdict on each."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slimfl.cli.output import Json, On, aside, show, show_json

if TYPE_CHECKING:
    from slimfl.experiments.exhibit import Exhibit


#: The results of a reproduction take a tenth of this.
MOST_BYTES = 1 << 25


def reproduce(
    what: Annotated[
        list[str] | None,
        typer.Argument(help="table1, table3 to table7, fig2 to fig7, choices, or all."),
    ] = None,
    scale: Annotated[str, typer.Option(help="smoke, small or paper.")] = "smoke",
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results; reproduction/SCALE otherwise.")
    ] = None,
    cache: Annotated[
        Path, typer.Option(help="Folder of the runs; what is there is not run again.")
    ] = Path("reproduction/cells"),
    workers: Annotated[
        int | None, typer.Option(help="Runs at a time; one a core otherwise.", min=1, max=1024)
    ] = None,
    on: On = None,
    as_is: Annotated[
        bool, typer.Option("--as-is", help="Run nothing: show the runs that are there.")
    ] = False,
    check: Annotated[
        Path | None, typer.Option(help="Compare with the results.json of an earlier one.")
    ] = None,
    json: Json = False,
) -> None:
    """Reproduce the paper: every table and figure beside the paper's, with a verdict on each."""
    from slimfl.cli.jobs_bar import jobs_bar
    from slimfl.experiments.reproduce import recipes, unfinished, write
    from slimfl.experiments.reproduce import reproduce as make
    from slimfl.experiments.scale import scale as named

    chosen, size = recipes(what or ["all"]), named(scale)
    before = None if check is None else _earlier(check)
    folder = out or Path("reproduction") / scale
    with jobs_bar(aside()) as watch:
        exhibits = make(
            chosen, size, cache, on=on or "local", workers=workers, run=not as_is, watch=watch
        )
    words = [*(what or ["all"]), "--scale", scale, *(["--as-is"] if as_is else [])]
    lacking = unfinished(chosen, size, cache)
    command = shlex.join(["slimfl", "reproduce", *words])
    document = write(exhibits, size, folder, command, lacking)
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


def _earlier(path: Path) -> Any:
    """The results of an earlier reproduction, read before the work with which to compare them."""
    from json import loads

    from slimfl.errors import RequestError
    from slimfl.regular_file import read_regular

    try:
        return loads(read_regular(path, MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        raise RequestError(
            f"{path} is not the results.json of a reproduction; give another --check"
        ) from None


def _compared(document: dict[str, Any], before: Any, path: Path) -> tuple[list[str], bool]:
    """What differs, and whether every digit has to agree."""
    from slimfl.errors import RequestError
    from slimfl.experiments.check import differences, same_engine

    try:
        return differences(document, before), same_engine(document, before)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise RequestError(
            f"{path} is not the results.json of a reproduction: {error!r}; give another --check"
        ) from None


def _judge(found: list[str], exact: bool, path: Path) -> None:
    from slimfl.errors import RunError

    how = "to the last digit" if exact else "within the spread, as another engine made them"
    if found and exact:
        raise RunError(f"{len(found)} differences from {path}: " + "; ".join(found))
    for line in found:
        aside().print(f"differs: {line}", highlight=False, soft_wrap=True)
    if not found:
        aside().print(f"as in {path}, {how}", highlight=False, soft_wrap=True)


def _rendered(exhibit: "Exhibit") -> Iterator[Any]:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=exhibit.title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, heading in enumerate(exhibit.table.headings):
        table.add_column(heading, justify="left" if number == 0 else "right")
    for row in exhibit.table.rows:
        table.add_row(*row)
    yield table
    for claim in exhibit.claims:
        yield Text.assemble("  ", (str(claim.verdict), "bold"), f": {claim.text}")
    yield ""


def _verdicts(exhibits: list["Exhibit"]) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(title="Verdicts", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("table or figure", "verdict", "claims that agree, in order only, differ"):
        table.add_column(heading)
    for exhibit in exhibits:
        counts = [
            sum(claim.verdict == verdict for claim in exhibit.claims)
            for verdict in ("agrees", "agrees in order only", "differs")
        ]
        table.add_row(exhibit.title, str(exhibit.verdict), ", ".join(map(str, counts)))
    return table
