"""`slimfl run` and `slimfl resume`."""

from pathlib import Path
from typing import Annotated

import typer

from slimfl import experiment as config
from slimfl.cli.output import Reply
from slimfl.cli.settings import DataDir, Set, Source, Trust, allow, command
from slimfl.experiment.short_names import SHORT_NAMES

SuperLinkOption = Annotated[
    str | None,
    typer.Option(
        help="Engine flower: use the devices of this SuperLink on this machine, given as HOST:PORT "
        "or as the folder of a kit. Without it, devices are simulated.",
        show_default=False,
    ),
]
Certificates = Annotated[
    Path | None,
    typer.Option(
        help="Root certificate that verifies the SuperLink at HOST:PORT.", show_default=False
    ),
]
On = Annotated[
    str | None,
    typer.Option(
        help="Run in parallel: local (one run per core), ray, or ray://HOST:PORT.",
        show_default="one run after the other, on all cores",
    ),
]


@command(
    "method", "rounds", "engine", "seed", *SHORT_NAMES.values(),
    method="slimfl,vanilla-all", data_dir="search, then download",
)  # fmt: skip
def run(
    experiment: Source = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the runs and the report.",
            show_default="runs/TIME-CHANNEL-alphaALPHA",
        ),
    ] = None,
    superlink: SuperLinkOption = None,
    root_certificates: Certificates = None,
    set_: Set = None,
    trust: Trust = None,
    on: On = None,
) -> Reply:
    """Train one or more methods, compare them and write a report.

    By default, compares SlimFL with Vanilla FL over the poor channel. Several values of a key,
    separated by commas, are one run each: --seed 0,1 --set data.alpha=0.1,1. The same command
    again goes on where it stopped.
    """
    given = config.asked(set_ or (), {})
    if superlink:
        given.setdefault("engine", "flower")
    if given.get("data.dir"):
        given["data.dir"] = Path(given["data.dir"]).absolute()
    allow(trust, config.typed_names(given))
    config.points(experiment, given)
    # PyTorch is imported only now: a mistyped key is answered at once
    from slimfl.cli import carrying_out

    return carrying_out.started(experiment, given, out, superlink, root_certificates, on)


@command()
def resume(
    run: Annotated[Path, typer.Argument(help="A run folder, or a folder of runs.")],
    rounds: Annotated[
        int | None,
        typer.Option(
            help="Continue up to this number of rounds, also after a finished run.",
            show_default="as many as the run was started with",
        ),
    ] = None,
    data_dir: DataDir = None,
    superlink: SuperLinkOption = None,
    root_certificates: Certificates = None,
    trust: Trust = None,
    on: On = None,
) -> Reply:
    """Continue runs that are not finished, or lengthen runs.

    The numbers are the same as those of a run that was never stopped.
    """
    from slimfl.cli import carrying_out

    allow(trust)
    return carrying_out.resumed(run, rounds, data_dir, superlink, root_certificates, on)
