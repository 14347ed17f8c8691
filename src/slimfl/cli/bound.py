"""`slimfl bound`: theorem 1, alone or with a measurement on a convex problem."""

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
    from slimfl.config import RadioSection

#: Defaults of the options if nothing is measured.
DEFAULTS = {
    "--smoothness": 1.0,
    "--strong-convexity": 0.1,
    "--delta": 1.0,
    "--initial-distance-squared": 1.0,
}
#: Maximum number of devices, over all repetitions, whose gradients `--measure` keeps in memory.
MOST_DEVICES = 1_000_000
#: Maximum number of gradients in a measurement.
MOST_GRADIENTS = 10_000_000_000


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
    measure: Annotated[
        bool,
        typer.Option("--measure", help="Compare with a ridge regression trained over this link."),
    ] = False,
    repetitions: Annotated[
        int | None,
        typer.Option(
            help="Number of repetitions of the measurement.",
            min=2,
            max=1_000_000,
            show_default="100",
        ),
    ] = None,
    non_iid: Annotated[
        float | None,
        typer.Option(
            help="How much the data of the measured devices differ; 0 means IID.",
            min=0,
            max=1e6,
            show_default="0",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the measurement.", min=0, max=2**63 - 1)] = 0,
    out: Out = Path("figures"),
    json: Json = False,
) -> None:
    """Compute theorem 1's bound on the optimality gap.

    Shows the paper's bound and a sharper one.

    With --measure, L, mu and Delta_1 are those of a ridge regression with nested widths. It is
    trained with theorem 1's learning rate and drawn into the same figure.
    """
    from slimfl.errors import RequestError
    from slimfl.theory.bound import optimal_weights

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
    measurement = {"--repetitions": repetitions, "--non-iid": non_iid}
    for name, value in (constants | measurement).items():
        if value is not None and not math.isfinite(value):
            raise RequestError(f"{name} takes a finite number, not {value}")
    _check_options(measure, constants, measurement)
    told = {name: DEFAULTS[name] if given is None else given for name, given in constants.items()}
    if measure:
        _check_size(devices, repetitions or 100, rounds)
        curves = _measured(section, loss_weights, devices, told["--delta"], rounds, seed,
                           repetitions or 100, non_iid or 0.0)  # fmt: skip
    else:
        curves = _unmeasured(section, loss_weights, devices, told, rounds)
    curves["figure"] = _draw(curves, out)
    document = _document(curves, rounds)
    if json:
        show_json(document)
    else:
        _show(document, devices)


def _shares(weights: tuple[float, ...]) -> bool:
    return abs(sum(weights) - 1) <= 1e-6 and min(weights) >= 1e-12


def _check_options(
    measure: bool, constants: dict[str, float | None], measurement: dict[str, float | None]
) -> None:
    from slimfl.errors import RequestError

    if not measure:
        for name, given in measurement.items():
            if given is not None:
                raise RequestError(f"{name} needs --measure; add --measure or omit {name}")
        smoothness = constants["--smoothness"] or DEFAULTS["--smoothness"]
        if (constants["--strong-convexity"] or DEFAULTS["--strong-convexity"]) > smoothness:
            raise RequestError("--strong-convexity must not exceed --smoothness")
        return
    for name, given in constants.items():
        if given is not None and name != "--delta":
            raise RequestError(
                f"--measure takes L, mu and Delta_1 from the measured problem; omit {name}"
            )


def _check_size(devices: int, repetitions: int, rounds: int) -> None:
    from slimfl.errors import RequestError

    if devices * repetitions > MOST_DEVICES:
        raise RequestError(
            f"{repetitions} repetitions of {devices} devices need too much memory; "
            "reduce --repetitions or --devices"
        )
    if devices * repetitions * rounds > MOST_GRADIENTS:
        raise RequestError(
            f"{rounds} rounds of {repetitions} repetitions of {devices} devices take too long; "
            "reduce --rounds"
        )


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
    from slimfl.theory.bound import bound as theorem1
    from slimfl.theory.bound import paper_constant, sharp_constant

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


def _measured(
    section: "RadioSection",
    weights: tuple[float, ...],
    devices: int,
    delta: float,
    rounds: int,
    seed: int,
    repetitions: int,
    non_iid: float,
) -> dict[str, Any]:
    """Both bounds from the constants of the convex problem, and its training."""
    from slimfl.radio import outage_link, signal
    from slimfl.theory.convex.problem import ridge_problem
    from slimfl.theory.convex.study import against_bounds
    from slimfl.theory.convex.variance import exact_variance

    count = len(weights)
    problem = ridge_problem(weights, devices, non_iid, delta, seed, dimension=max(16, count))
    coding = signal(section, tuple((i,) for i in range(count)), count).coding
    curves = against_bounds(
        problem, (outage_link(section), coding), _rounds(rounds), repetitions, seed
    )
    variance = exact_variance(problem, problem.optimum, curves["probabilities"])
    curves["measurement"] = {
        "repetitions": repetitions,
        "non_iid": non_iid,
        "seed": seed,
        "largest_share_of_paper": finite(float(curves["share_of_paper"])),
        "largest_share_of_sharp": finite(float(curves["share_of_sharp"])),
        "variance_at_optimum": {
            "noise": float(variance.noise.sum()),
            "selection": float(variance.selection.sum()),
        },
    }
    return curves


def _draw(curves: dict[str, Any], out: Path) -> str:
    from slimfl.report.figures import bound_figure, save

    drawn = {name: curves[f"bound_{name}"] for name in ("paper", "sharp")}
    measured = None
    if "measurement" in curves:
        measured = (curves["measured"], curves["low"], curves["high"])
    return str(save(bound_figure(curves["round"], drawn, measured), out / "bound.png"))


def _document(curves: dict[str, Any], rounds: int) -> dict[str, Any]:
    """The document to print, with only the rounds of the table."""
    from slimfl.theory.bound import learning_rate

    columns = ("bound_paper", "bound_sharp", "measured", "standard_error", "low", "high")
    rows = []
    for t in _shown(rounds):
        at = curves["round"].index(t)
        rate = learning_rate(t, curves["smoothness"], curves["strong_convexity"])
        values = {key: finite(float(curves[key][at])) for key in columns if key in curves}
        rows.append({"round": t, "learning_rate": float(rate), **values})
    measured = {"measurement": curves["measurement"]} if "measurement" in curves else {}
    problem = ("smoothness", "strong_convexity", "delta", "initial_distance_squared")
    return {
        "decoding_probabilities": curves["probabilities"].tolist(),
        **{key: float(curves[key]) for key in problem},
        "B": {name: finite(value) for name, value in curves["B"].items()},
        "bound": rows,
        **measured,
        "figure": curves["figure"],
    }


def _show(document: dict[str, Any], devices: int) -> None:
    from rich.table import Table

    columns = {"bound_paper": "paper's\nbound", "bound_sharp": "sharper\nbound"}
    title = "Theorem 1: E[F] - F* after t rounds is at most"
    if "measurement" in document:
        columns |= {"measured": "measured\nmean", "low": "5%", "high": "95%"}
        title = "Theorem 1 and a measurement of F - F* after t rounds"
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
    if "measurement" in document:
        lines += _measurement_in_words(document)
    show(table, *lines)
    aside().print(f"figure: {document['figure']}", highlight=False, soft_wrap=True)


def _measurement_in_words(document: dict[str, Any]) -> list[str]:
    told = document["measurement"]
    variance = told["variance_at_optimum"]
    verdicts = []
    for name, share in (
        ("paper's bound", told["largest_share_of_paper"]),
        ("sharper bound", told["largest_share_of_sharp"]),
    ):
        if share is not None:
            verb = "stays below" if share <= 1 else "exceeds"
            verdicts.append(f"{verb} the {name} (up to {share:.2g} times it)")
    return [
        f"Measured on a ridge regression with L = {document['smoothness']:.4g}, mu = "
        f"{document['strong_convexity']:.4g}, Delta_1 = "
        f"{document['initial_distance_squared']:.4g}, {told['repetitions']} repetitions: the gap "
        + (" and ".join(verdicts) or "has no bound, because a segment never arrives")
        + ".",
        f"Variance of the global gradient at the optimum: {variance['noise']:.4g} from sampling, "
        f"{variance['selection']:.4g} from which devices were decoded.",
    ]
