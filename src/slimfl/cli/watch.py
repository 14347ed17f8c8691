"""`slimfl watch`: follow runs in a browser."""

import os
import re
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from slimfl.cli.output import Json, remark, show_json

#: Where `slimfl run` puts runs.
RUNS = Path("runs")
#: Environment variable for a fixed token, so that open pages survive a restart of the server.
TOKEN = "SLIMFL_WATCH_TOKEN"


def watch(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Run folders, or folders that contain runs.",
            show_default="runs/",
        ),
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
    json: Json = False,
) -> None:
    """Follow running and finished runs on a local web page."""
    from slimfl.errors import Interrupted
    from slimfl.extras import require
    from slimfl.report.live.board import Board, check_paths

    require("watch", "starlette", "uvicorn")
    from slimfl.report.live.server import Server

    server = Server(Board(check_paths(runs or [RUNS])), _own_token(), host, port)
    if json:
        show_json({"url": server.url})
        sys.stdout.flush()
    else:
        remark(f"{server.url}\nPress Ctrl-C to stop.")
    if browser and not json and _has_screen():
        import webbrowser

        webbrowser.open(server.url)
    try:
        server.serve(seconds)
    except Interrupted as interrupted:
        if interrupted.status != 128 + signal.SIGINT:
            interrupted.way_on = "run the same command to show the page again"
            raise


def _own_token() -> str | None:
    from slimfl.errors import RequestError

    token = os.environ.get(TOKEN)
    if token is not None and not re.fullmatch(r"[A-Za-z0-9_-]{16,200}", token):
        raise RequestError(
            f"{TOKEN} must be 16 or more letters, digits, - or _; change or unset it"
        )
    return token


def _has_screen() -> bool:
    """True if there is a screen; without one, Python would start a text browser in the terminal."""
    return sys.platform == "darwin" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
