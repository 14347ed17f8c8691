"""`slimfl compare`, `report`, `watch` and `pick`: commands that read runs and train nothing."""

import os
import re
import signal
import sys
import webbrowser
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from slimfl.cli.output import Reply, check_writable, give, wants_json
from slimfl.cli.settings import DataDir, Speed, Trust, allow, command
from slimfl.errors import Interrupted, RequestError
from slimfl.export.picking import Limits, offered, why_not
from slimfl.export.picking import pick as best
from slimfl.extras import require
from slimfl.report.figures.drawing import save
from slimfl.report.figures.runs import energy_figure
from slimfl.report.live.board import Board, check_paths
from slimfl.report.pages.run_report import write_report
from slimfl.report.tables import console_tables
from slimfl.results.records import RunRecord, find
from slimfl.results.summary import summaries
from slimfl.runs.storage.run_folder import EXPERIMENT

Runs = Annotated[
    list[Path],
    typer.Argument(help="Run folders, or folders that contain runs up to two levels down."),
]

#: Suffixes that a browser opens as a page.
PAGES = (".html", ".htm")
#: Where `slimfl run` puts runs.
RUNS = Path("runs")
#: Environment variable for a fixed token, so that open pages survive a restart of the server.
TOKEN = "SLIMFL_WATCH_TOKEN"


@command()
def compare(runs: Runs) -> Reply:
    """Compare runs in a table.

    It shows accuracy, delivered segments, bits, energy, and the cost until convergence.
    """
    records = _found(runs)
    return Reply({"runs": summaries(records)}, console_tables(records, differences=True))


@command()
def report(
    runs: Runs,
    out: Annotated[
        Path | None,
        typer.Option(help="HTML file to write.", show_default="report.html in the first folder"),
    ] = None,
) -> Reply:
    """Write a report on the runs as one HTML file.

    The file is self-contained and loads nothing from the internet.
    """
    if out is not None and out.suffix.lower() not in PAGES:
        raise RequestError(
            f"a report is an HTML page and cannot be written to {out}; end the name in .html (a "
            "browser can print it as PDF, and every figure has buttons for SVG and CSV)"
        )
    records = _found(runs)
    path = write_report(records, out or next(filter(Path.is_dir, runs)) / "report.html")
    return Reply({"report": path, "runs": summaries(records)}, (), [f"report: {path}"])


def _found(paths: list[Path]) -> list[RunRecord]:
    """The runs at these paths, including groups inside a folder such as `runs/`."""
    return find(folder for path in paths for folder in _groups(path))


def _groups(path: Path) -> list[Path]:
    """The folder itself or, if runs are one level deeper, all groups in it by name."""
    if not path.is_dir() or _is_run(path) or any(map(_is_run, path.iterdir())):
        return [path]
    folders = filter(Path.is_dir, sorted(path.iterdir()))
    return [entry for entry in folders if any(map(_is_run, entry.iterdir()))] or [path]


def _is_run(path: Path) -> bool:
    return (path / EXPERIMENT).is_file()


@command()
def watch(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(help="Run folders, or folders that contain runs.", show_default="runs/"),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; there is no TLS, so keep it on this machine.")
    ] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Port to listen on.", show_default="8321, or any free port"
        ),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
    seconds: Annotated[
        float | None,
        typer.Option(min=0, help="Stop after this number of seconds.", show_default="at Ctrl-C"),
    ] = None,
) -> None:
    """Follow running and finished runs on a local web page."""
    require("watch", "starlette", "uvicorn")
    from slimfl.report.live.server import Server  # in an extra

    server = Server(Board(check_paths(runs or [RUNS])), _own_token(), host, port)
    give(Reply({"url": server.url}, (), [f"{server.url}\nPress Ctrl-C to stop."]))
    sys.stdout.flush()
    if browser and not wants_json() and _has_screen():
        webbrowser.open(server.url)
    try:
        server.serve(seconds)
    except Interrupted as interrupted:
        if interrupted.status != 128 + signal.SIGINT:
            interrupted.way_on = "run the same command to show the page again"
            raise


def _own_token() -> str | None:
    token = os.environ.get(TOKEN)
    if token is not None and not re.fullmatch(r"[A-Za-z0-9_-]{16,200}", token):
        raise RequestError(
            f"{TOKEN} must be 16 or more letters, digits, - or _; change or unset it"
        )
    return token


def _has_screen() -> bool:
    """True if there is a screen; without one, Python would start a text browser in the terminal."""
    return sys.platform == "darwin" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))


@command()
def pick(
    run: Annotated[Path, typer.Argument(help="Run folder, or the folder of an export.")],
    max_macs: Annotated[
        float | None, typer.Option(help="Maximum multiply-adds per image.", show_default="no limit")
    ] = None,
    max_energy_j: Annotated[
        float | None, typer.Option(help="Maximum joules per image.", show_default="no limit")
    ] = None,
    min_accuracy: Annotated[
        float | None,
        typer.Option(
            help="Minimum accuracy on the test images, from 0 to 1.", show_default="no limit"
        ),
    ] = None,
    max_latency_ms: Annotated[
        float | None,
        typer.Option(
            help="Maximum milliseconds per image; measured now for a run folder.",
            show_default="no limit",
        ),
    ] = None,
    energy: Annotated[
        str | None,
        typer.Option(
            help="Energy preset for a run folder; an export has its own.",
            show_default="horowitz-45nm",
        ),
    ] = None,
    macs_per_s: Speed = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw accuracy against energy: .png, .pdf or .svg.", show_default="none"),
    ] = None,
    data_dir: DataDir = None,
    trust: Trust = None,
) -> Reply:
    """Choose the best width within the given limits, and say why."""
    allow(trust)
    limits = Limits(max_macs, max_energy_j, min_accuracy, max_latency_ms)
    limits.check()
    if plot is not None:
        check_writable(plot)
    measure = max_latency_ms is not None
    offer = offered(run, energy, macs_per_s=macs_per_s, measure=measure, data_dir=data_dir)
    models = offer.models
    picked = best(models, limits)
    if plot is not None:
        points = [(one.label, one.joules_per_image, one.accuracy) for one in models]
        save(energy_figure(points, offer.cascade, offer.energy_preset), plot)
    broken = {one.name: why_not(one, models, limits) for one in models}
    document = {
        "picked": picked.choice.model_dump(mode="json"),
        "why": picked.why,
        "limits": asdict(limits),
        "energy_preset": offer.energy_preset,
        "latency_runtime": offer.latency_runtime,
        "choices": [{**one.model_dump(mode="json"), "broken": broken[one.name]} for one in models],
    }
    misfits = [f"{name} does not fit: {', '.join(why)}" for name, why in broken.items() if why]
    return Reply(document, [f"{picked.why} (energy preset {offer.energy_preset})", *misfits])
