"""`slimfl compare` and `slimfl report`: look at runs that are there."""

from pathlib import Path
from typing import Annotated

import typer

from slimfl.cli.output import Json, aside, show, show_json

Runs = Annotated[list[Path], typer.Argument(help="Run folders, or folders of runs.")]


def compare(runs: Runs, json: Json = False) -> None:
    """Put runs side by side: accuracy, what arrived, bits, energy, cost until convergence."""
    from slimfl.report import clock_tables, compare_table, devices_tables
    from slimfl.results import find, summaries

    records = find(runs)
    if json:
        show_json({"runs": summaries(records)})
    else:
        show(compare_table(records), *clock_tables(records), *devices_tables(records))


def report(
    runs: Runs,
    out: Annotated[Path | None, typer.Option(help="The HTML file to write.")] = None,
    json: Json = False,
) -> None:
    """Write one self-contained HTML file that shows the runs; it needs no internet."""
    from slimfl.report import write_report
    from slimfl.results import find, summaries

    records = find(runs)
    path = write_report(records, out or runs[0] / "report.html")
    if json:
        show_json({"report": path, "runs": summaries(records)})
    else:
        aside().print(f"report: {path}", highlight=False, soft_wrap=True)
