"""`slimfl bound`: theorem 1, in the paper's form and a sharper one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slimfl.cli.output import Json, finite, floats, remark, show, show_json, table
from slimfl.cli.radio import Devices, Out, SegmentCount, radio_section
from slimfl.cli.settings import Set, with_settings

if TYPE_CHECKING:
    from slimfl.experiment import RadioSection

BoundCommand = with_settings(
    "radio.channel", "radio.noise_dbm", "radio.spectral_efficiency", "radio.split",
    noise_dbm="the channel's", split="0.8,0.2 for two segments, else optimal",
)  # fmt: skip


def bound(
    segments: SegmentCount = None,
    devices: Devices = 10,
    weights: Annotated[
        str | None, typer.Option(help="Loss weights.", show_default="1/S each")
    ] = None,
    smoothness: Annotated[
        float, typer.Option(help="L, the smoothness.", min=1e-12, max=1e12)
    ] = 1.0,
    strong_convexity: Annotated[
        float, typer.Option(help="mu, the strong convexity.", min=1e-12, max=1e12)
    ] = 0.1,
    delta: Annotated[
        float, typer.Option(help="Mean variance of a local gradient.", min=0, max=1e12)
    ] = 1.0,
    initial_distance_squared: Annotated[
        float, typer.Option(help="Delta_1, the squared distance at the start.", min=0, max=1e12)
    ] = 1.0,
    rounds: Annotated[int, typer.Option(help="Number of rounds.", min=1, max=10_000_000)] = 1000,
    out: Out = Path("figures"),
    set_: Set = None,
    json: Json = False,
) -> None:
    """Compute theorem 1's bound on the optimality gap.

    Shows the paper's bound and a sharper one.
    """
    from slimfl.errors import RequestError
    from slimfl.radio.bound import optimal_weights

    section, widths = radio_section(None, set_ or (), segments)
    count = len(widths)
    loss_weights = floats(weights, "--weights") or optimal_weights(count)
    if len(loss_weights) != count or not _shares(loss_weights):
        raise RequestError(f"--weights takes {count} positive numbers that sum to 1")
    problem = {
        "smoothness": smoothness,
        "strong_convexity": strong_convexity,
        "initial_distance_squared": initial_distance_squared,
    }
    for name, value in {**problem, "delta": delta}.items():
        if value != value:  # a NaN is neither too small nor too large
            raise RequestError(f"--{name.replace('_', '-')} takes a number, not {value}")
    if strong_convexity > smoothness:
        raise RequestError("--strong-convexity must not exceed --smoothness")
    curves = _curves(section, loss_weights, devices, delta, problem, rounds)
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


def _curves(
    section: "RadioSection",
    weights: tuple[float, ...],
    devices: int,
    delta: float,
    problem: dict[str, float],
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
        "paper": paper_constant(delta, probabilities, weights),
        "sharp": sharp_constant(delta, probabilities, weights, devices),
    }
    t = _rounds(rounds)
    return {
        "probabilities": probabilities,
        **problem,
        "delta": delta,
        "B": constants,
        "round": t,
        **{f"bound_{name}": theorem1(t, constant=b, **problem) for name, b in constants.items()},
    }


def _draw(curves: dict[str, Any], out: Path) -> str:
    from slimfl.report.figures.drawing import save
    from slimfl.report.figures.link import bound_figure

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
    def words(bound: float | None) -> str:
        return "infinite" if bound is None else f"{bound:.4g}"

    rows = [
        {
            "t": row["round"],
            "learning\nrate": row["learning_rate"],
            "paper's\nbound": words(row["bound_paper"]),
            "sharper\nbound": words(row["bound_sharp"]),
        }
        for row in document["bound"]
    ]
    constants = {name: words(b) for name, b in document["B"].items()}
    reach = ", ".join(f"{p:.4f}" for p in document["decoding_probabilities"])
    show(
        table(rows, "Theorem 1: E[F] - F* after t rounds is at most"),
        f"B = {constants['paper']} (paper, lemma 1), {constants['sharp']} (sharper, "
        f"K = {devices}); p = {reach}",
    )
    remark(f"figure: {document['figure']}")
