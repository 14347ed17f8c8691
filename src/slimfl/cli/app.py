"""The `slimfl` command: its subcommands, and how errors end it.

Commands import what they need when they run, so that `slimfl --help` is fast.
"""

import errno
import gc
import io
import logging
import sys
from typing import Annotated

import typer

from slimfl.cli.bound import BoundCommand, bound
from slimfl.cli.cost import CostCommand, cost
from slimfl.cli.data import data
from slimfl.cli.deploy import deploy
from slimfl.cli.doctor import doctor
from slimfl.cli.export import export, pick
from slimfl.cli.interrupts import interrupts_raise
from slimfl.cli.keys import keys
from slimfl.cli.plain_help import PlainCommand, PlainGroup
from slimfl.cli.population import population
from slimfl.cli.radio import LinkCommand, link
from slimfl.cli.results import compare, report
from slimfl.cli.run import RunCommand, resume, run
from slimfl.cli.watch import watch
from slimfl.errors import Interrupted, RequestError, RunError

app = typer.Typer(
    name="slimfl",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: drawing boxes would double the time it takes
    cls=PlainGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def show_version(wanted: bool) -> None:
    """Print the version and end."""
    if wanted:
        from importlib.metadata import version

        print(f"slimfl {version('slimfl')}")
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


made_from_keys = {run: RunCommand, link: LinkCommand, bound: BoundCommand, cost: CostCommand}
for command in (
    run, resume, keys, watch, compare, report, export, pick, link, bound, cost, doctor,
):  # fmt: skip
    app.command(cls=made_from_keys.get(command, PlainCommand))(command)
app.add_typer(data, name="data")
app.add_typer(population, name="population")
app.add_typer(deploy, name="deploy")


#: Errors of the operating system that are caused by the given name.
NAMES = (errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL, errno.EILSEQ, errno.EACCES, errno.ENOTDIR,
         errno.EISDIR)  # fmt: skip


#: Maximum length of an error message; some list all choices.
LONGEST = 1500


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
