"""`slimfl bound`: theorem 1, in the paper's form and a sharper one."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slimfl.cli.output import Json, aside, finite, floats, show, show_json
from slimfl.cli.radio import (
    Channel,
    Devices,
    Efficiency,
    Noise,
    Out,
    SegmentCount,
    Split,
    radio_section,
)

if TYPE_CHECKING:
    from slimfl.experiment import RadioSection

#: Defaults of the options.
DEFAULTS = {
    "--smoothness": 1.0,
    "--strong-convexity": 0.1,
    "--delta": 1.0,
    "--initial-distance-squared": 1.0,
}


def bound(
    channel: Channel = None,
    noise_dbm: Noise = None,
    spectral_efficiency: Efficiency = "1.5",
    split: Split = None,
    segments: SegmentCount = None,
    devices: Devices = 10,
    weights: Annotated[
        str | None, typer.Option(help="Loss weights.", show_default="1/S each")
    ] = None,
    smoothness: Annotated[
        float | None,
        typer.Option(help="L, the smoothness.", min=1e-12, max=1e12, show_default="1"),
    ] = None,
    strong_convexity: Annotated[
        float | None,
        typer.Option(help="mu, the strong convexity.", min=1e-12, max=1e12, show_default="0.1"),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(help="Mean variance of a local gradient.", min=0, max=1e12, show_default="1"),
    ] = None,
    initial_distance_squared: Annotated[
        float | None,
        typer.Option(
            help="Delta_1, the squared distance at the start.", min=0, max=1e12, show_default="1"
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(help="Number of rounds.", min=1, max=10_000_000)] = 1000,
    out: Out = Path("figures"),
    json: Json = False,
) -> None:
    """Compute theorem 1's bound on the optimality gap.

    Shows the paper's bound and a sharper one.
    """
    from slimfl.errors import RequestError
    from slimfl.radio.bound import optimal_weights

    section, widths = radio_section(channel, noise_dbm, spectral_efficiency, split, segments)
    count = len(widths)
    loss_weights = floats(weights, "--weights") or optimal_weights(count)
    if len(loss_weights) != count or not _shares(loss_weights):
        raise RequestError(f"--weights takes {count} positive numbers that sum to 1")
    constants = {
        "--smoothness": smoothness,
        "--strong-convexity": strong_convexity,
        "--initial-distance-squared": initial_distance_squared,
        "--delta": delta,
    }
    for name, value in constants.items():
        if value is not None and not math.isfinite(value):
            raise RequestError(f"{name} takes a finite number, not {value}")
    told = {name: DEFAULTS[name] if given is None else given for name, given in constants.items()}
    if told["--strong-convexity"] > told["--smoothness"]:
        raise RequestError("--strong-convexity must not exceed --smoothness")
    curves = _unmeasured(section, loss_weights, devices, told, rounds)
    curves["figure"] = _draw(curves, out)
    document = _document(curves, rounds)
    if json:
        show_json(document)
    else:
        _show(document, devices)


def _shares(weights: tuple[float, ...]) -> bool:
    return abs(sum(weights) - 1) <= 1e-6 and min(weights) >= 1e-12


def _rounds(last: int) -> list[int]:
    """Enough rounds for a smooth curve, including those of the table."""
    import numpy as np

    return sorted({*np.geomspace(1, last, 200).round().astype(int).tolist(), *_shown(last)})


def _shown(last: int) -> list[int]:
    return sorted({1, *(10**k for k in range(1, 7) if 10**k < last), last})


def _unmeasured(
    section: "RadioSection",
    weights: tuple[float, ...],
    devices: int,
    told: dict[str, float],
    rounds: int,
) -> dict[str, Any]:
    """Both bounds from the options."""
    from slimfl.radio import outage_link, signal
    from slimfl.radio.bound import bound as theorem1
    from slimfl.radio.bound import paper_constant, sharp_constant

    count = len(weights)
    coding = signal(section, tuple((i,) for i in range(count)), count).coding
    probabilities = outage_link(section).decoding_probabilities(coding)
    constants = {
        "paper": paper_constant(told["--delta"], probabilities, weights),
        "sharp": sharp_constant(told["--delta"], probabilities, weights, devices),
    }
    problem = {
        "smoothness": told["--smoothness"],
        "strong_convexity": told["--strong-convexity"],
        "initial_distance_squared": told["--initial-distance-squared"],
    }
    t = _rounds(rounds)
    return {
        "probabilities": probabilities,
        **problem,
        "delta": told["--delta"],
        "B": constants,
        "round": t,
        **{f"bound_{name}": theorem1(t, constant=b, **problem) for name, b in constants.items()},
    }


def _draw(curves: dict[str, Any], out: Path) -> str:
    from slimfl.report.figures import bound_figure, save

    drawn = {name: curves[f"bound_{name}"] for name in ("paper", "sharp")}
    return str(save(bound_figure(curves["round"], drawn), out / "bound.png"))


def _document(curves: dict[str, Any], rounds: int) -> dict[str, Any]:
    """The document to print, with only the rounds of the table."""
    from slimfl.radio.bound import learning_rate

    columns = ("bound_paper", "bound_sharp")
    rows = []
    for t in _shown(rounds):
        at = curves["round"].index(t)
        rate = learning_rate(t, curves["smoothness"], curves["strong_convexity"])
        values = {key: finite(float(curves[key][at])) for key in columns}
        rows.append({"round": t, "learning_rate": float(rate), **values})
    problem = ("smoothness", "strong_convexity", "delta", "initial_distance_squared")
    return {
        "decoding_probabilities": curves["probabilities"].tolist(),
        **{key: float(curves[key]) for key in problem},
        "B": {name: finite(value) for name, value in curves["B"].items()},
        "bound": rows,
        "figure": curves["figure"],
    }


def _show(document: dict[str, Any], devices: int) -> None:
    from rich.table import Table

    columns = {"bound_paper": "paper's\nbound", "bound_sharp": "sharper\nbound"}
    title = "Theorem 1: E[F] - F* after t rounds is at most"
    table = Table(title=title)
    for heading in ("t", "learning\nrate", *columns.values()):
        table.add_column(heading, justify="right")
    for row in document["bound"]:
        cells = ("infinite" if row[key] is None else f"{row[key]:.4g}" for key in columns)
        table.add_row(str(row["round"]), f"{row['learning_rate']:.4g}", *cells)
    told = {name: "infinite" if b is None else f"{b:.4g}" for name, b in document["B"].items()}
    reach = ", ".join(f"{p:.4f}" for p in document["decoding_probabilities"])
    lines = [
        f"B = {told['paper']} (paper, lemma 1), {told['sharp']} (sharper, K = {devices}); "
        f"p = {reach}"
    ]
    show(table, *lines)
    aside().print(f"figure: {document['figure']}", highlight=False, soft_wrap=True)
