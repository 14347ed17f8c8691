"""The `slimfl` command: its subcommands, and how errors end it."""

import errno
import gc
import io
import logging
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version as version_of
from types import FrameType
from typing import Annotated, ClassVar

import typer

from slimfl.cli.plain_help import LazyGroup, Places
from slimfl.errors import Interrupted, RequestError, RunError


class Slimfl(LazyGroup):
    """All commands, in the order of the help."""

    places: ClassVar[Places] = {
        "run": "slimfl.cli.runs:run",
        "resume": "slimfl.cli.runs:resume",
        "keys": "slimfl.cli.reference:keys",
        "watch": "slimfl.cli.results:watch",
        "compare": "slimfl.cli.results:compare",
        "report": "slimfl.cli.results:report",
        "export": "slimfl.cli.networks:export",
        "pick": "slimfl.cli.results:pick",
        "link": "slimfl.cli.radio:link",
        "bound": "slimfl.cli.radio:bound",
        "cost": "slimfl.cli.networks:cost",
        "doctor": "slimfl.cli.machine:doctor",
        "data": ("List, download and show datasets.", {
            "list": "slimfl.cli.data:list_",
            "fetch": "slimfl.cli.data:fetch",
            "show": "slimfl.cli.data:show_partition",
        }),
        "population": ("Show the devices of an experiment.", {
            "show": "slimfl.cli.data:show_population",
        }),
        "deploy": ("Run a federation of separate machines on Flower.", {
            name: f"slimfl.cli.deploy:{name}"
            for name in ("init", "up", "status", "down", "register", "revoke")
        }),
    }  # fmt: skip


app = typer.Typer(
    name="slimfl",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: drawing boxes would double the time it takes
    cls=Slimfl,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def show_version(wanted: bool) -> None:
    """Print the version and end."""
    if wanted:
        print(f"slimfl {version_of('slimfl')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", is_eager=True, callback=show_version
        ),
    ] = False,
) -> None:
    """Federated learning over width-adjustable networks on unreliable radio links."""


#: Errors of the operating system that are caused by the given name.
NAMES = (errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL, errno.EILSEQ, errno.EACCES, errno.ENOTDIR,
         errno.EISDIR)  # fmt: skip
#: Maximum length of an error message; some list all choices.
LONGEST = 1500
#: A terminal, a shell and `make` may all forward the same Ctrl-C; within this time it counts once.
SAME_S = 1.0


def main(commands: typer.Typer = app, name: str = "slimfl") -> None:
    """Run a command; errors become one sentence and a status, never a traceback."""
    # importing torch creates 260,000 permanent objects; with the default threshold of 700, garbage
    # collection would take a sixth of the import time
    gc.set_threshold(100_000)
    for stream in (sys.stdout, sys.stderr):  # a terminal may lack a character of a table or a name
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    try:
        with interrupts_raise():
            commands()
    except RequestError as error:
        _end(f"{name}: {error}", 2)
    except RunError as error:
        _end(f"{name}: {error}", 1)
    except Interrupted as interrupted:
        _end(f"{name}: interrupted; {interrupted.way_on}", interrupted.status)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:  # an unexpected path, or a failing disk
        where = f"{error.filename}: " if error.filename else ""
        _end(f"{name}: {where}{error.strerror or error}", 2 if error.errno in NAMES else 1)


def _end(sentence: str, status: int) -> None:
    # one line of readable length, whatever the user typed
    if len(sentence) > LONGEST:
        sentence = f"{sentence[: LONGEST // 2]} ... {sentence[-LONGEST // 2 :]}"
    print("".join(c if c.isprintable() else repr(c)[1:-1] for c in sentence), file=sys.stderr)
    sys.exit(status)


@contextmanager
def interrupts_raise() -> Iterator[None]:
    """Make SIGINT and SIGTERM raise `Interrupted`, so that they end a command like an error.

    Python's own KeyboardInterrupt does not work here, as typer silently ends the command on it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    last_s = -SAME_S

    def raise_interrupted(number: int, frame: FrameType | None) -> None:
        nonlocal last_s
        if time.monotonic() - last_s >= SAME_S:
            last_s = time.monotonic()
            raise Interrupted(number)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # as in a background job of a shell script
            signal.signal(number, raise_interrupted)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
