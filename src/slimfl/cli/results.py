"""`slimfl compare` and `slimfl report`: look at existing runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slimfl.cli.output import Json, remark, show, show_json

if TYPE_CHECKING:
    from slimfl.results.records import RunRecord

Runs = Annotated[
    list[Path],
    typer.Argument(help="Run folders, or folders that contain runs up to two levels down."),
]

#: Suffixes that a browser opens as a page.
PAGES = (".html", ".htm")


def compare(runs: Runs, json: Json = False) -> None:
    """Compare runs in a table.

    It shows accuracy, delivered segments, bits, energy, and the cost until convergence.
    """
    from slimfl.report.tables import clock_tables, compare_table, devices_tables
    from slimfl.results.summary import summaries

    records = _found(runs)
    if json:
        show_json({"runs": summaries(records)})
    else:
        show(compare_table(records), *clock_tables(records), *devices_tables(records))


def report(
    runs: Runs,
    out: Annotated[
        Path | None,
        typer.Option(help="HTML file to write.", show_default="report.html in the first folder"),
    ] = None,
    json: Json = False,
) -> None:
    """Write a report on the runs as one HTML file.

    The file is self-contained and loads nothing from the internet.
    """
    from slimfl.errors import RequestError
    from slimfl.report.pages.run_report import write_report
    from slimfl.results.summary import summaries

    if out is not None and out.suffix.lower() not in PAGES:
        raise RequestError(
            f"a report is an HTML page and cannot be written to {out}; end the name in .html (a "
            "browser can print it as PDF, and every figure has buttons for SVG and CSV)"
        )
    records = _found(runs)
    path = write_report(records, out or next(filter(Path.is_dir, runs)) / "report.html")
    if json:
        show_json({"report": path, "runs": summaries(records)})
    else:
        remark(f"report: {path}")


def _found(paths: list[Path]) -> list["RunRecord"]:
    """The runs at these paths, including groups inside a folder such as `runs/`."""
    from slimfl.results.records import find

    return find(folder for path in paths for folder in _groups(path))


def _groups(path: Path) -> list[Path]:
    """The folder itself or, if runs are one level deeper, all groups in it by name."""
    if not path.is_dir() or _is_run(path) or any(map(_is_run, path.iterdir())):
        return [path]
    groups = [entry for entry in sorted(path.iterdir()) if _is_group(entry)]
    return groups or [path]


def _is_run(path: Path) -> bool:
    from slimfl.runs.storage.run_folder import EXPERIMENT

    return (path / EXPERIMENT).is_file()


def _is_group(path: Path) -> bool:
    return path.is_dir() and any(map(_is_run, path.iterdir()))
