"""The routes of the server: the page, the event stream, a run's details, and reports on demand."""

import asyncio
import tempfile
import threading
import time
from collections.abc import AsyncIterator
from importlib import resources
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.responses import StreamingResponse as Stream
from starlette.routing import Route
from starlette.types import ASGIApp

from slimfl.errors import RequestError
from slimfl.report.live.board import Board, Reader
from slimfl.report.live.details import details_of
from slimfl.report.live.guard import Guard
from slimfl.report.pages.run_report import write_report
from slimfl.results.records import load

#: Intervals for updates of a connected page, and for keep-alive messages.
LOOK_S, SILENCE_S = 0.2, 15.0

#: The files of the page by name, with their folder.
FILES = {
    "index.html": "live/page",
    "live.css": "live/page",
    "live.js": "live/page",
    "table.js": "live/page",
    "page.css": "pages",
    "charts.js": "pages",
    "plot.min.js": "pages/vendor",
}
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}

#: A report has its own inline script. In a sandbox without an origin it cannot read from this
#: server, whatever a run folder might have smuggled into it.
REPORT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "sandbox allow-scripts allow-downloads"
)


def application(board: Board, token: str, host: str) -> ASGIApp:
    """The server's answers, behind the guard."""
    here = resources.files("slimfl.report")
    files = {name: here.joinpath(folder, name).read_bytes() for name, folder in FILES.items()}
    one_report = threading.Lock()

    async def file(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in files:
            return PlainTextResponse("There is no such page.\n", 404)
        return Response(files[name], media_type=TYPES[name.rpartition(".")[2]])

    async def events(request: Request) -> Response:
        return Stream(_events(board), media_type="text/event-stream")

    async def detail(request: Request) -> Response:
        run = board.runs.get(request.path_params["key"])
        if run is None:
            return PlainTextResponse("There is no such run.\n", 404)
        try:
            return JSONResponse(await run_in_threadpool(details_of, run))
        except (RequestError, OSError) as error:
            return PlainTextResponse(f"{error}\n", 409)

    async def report(request: Request) -> Response:
        asked = dict.fromkeys(request.query_params.getlist("run"))
        runs = [board.runs[key] for key in asked if key in board.runs]
        if not runs:
            return PlainTextResponse("There is no such run.\n", 404)
        try:
            page = await run_in_threadpool(_report, [run.path for run in runs], one_report)
        except (RequestError, OSError) as error:
            return PlainTextResponse(f"The report cannot be made: {error}\n", 409)
        return HTMLResponse(page, headers={"content-security-policy": REPORT_POLICY})

    routes = [
        Route("/", file),
        Route("/events", events),
        Route("/report", report),
        Route("/details/{key}", detail),
        Route("/{name}", file),
    ]
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False  # a redirect would contain the Host header
    return Guard(app, token, host)


async def _events(board: Board) -> AsyncIterator[str]:
    reader = Reader()
    yield "retry: 1000\n\n"
    spoke_s = time.monotonic()
    while not board.closed:
        for text in reader.news(board):
            yield text
            spoke_s = time.monotonic()
        if time.monotonic() - spoke_s > SILENCE_S:  # keep-alive, which detects a lost connection
            yield ": nothing new\n\n"
            spoke_s = time.monotonic()
        await asyncio.sleep(LOOK_S)


def _report(paths: list[Path], one_report: threading.Lock) -> bytes:
    with one_report, tempfile.TemporaryDirectory() as folder:
        records = [load(path) for path in paths]
        return write_report(records, Path(folder) / "report.html").read_bytes()
