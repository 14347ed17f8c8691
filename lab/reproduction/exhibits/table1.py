"""Table I: UL-MobileNet's layers and their weights at both widths."""

from __future__ import annotations

from math import prod

from lab.reproduction import paper
from lab.reproduction.cells.scale import Scale
from lab.reproduction.exhibits.exhibit import Exhibit, Recipe, Runs, Table
from lab.reproduction.judging.verdict import Claim, Comparison
from slimfl.nn import Slimmable

WIDTHS = (1.0, 0.5)


def show(scale: Scale, runs: Runs) -> Exhibit:
    """Count the weights of every layer of our network and compare with the paper's shapes."""
    from slimfl.nn import ULMobileNet  # imports torch, which other exhibits do not need

    layers = [layer for layer in ULMobileNet().modules() if isinstance(layer, Slimmable)]
    rows, comparisons = [], []
    for number, (layer, printed) in enumerate(zip(layers, paper.TABLE1, strict=True), 1):
        shapes = [layer.active_shapes(width)["weight"] for width in WIDTHS]
        rows.append(
            [
                f"{number} {type(layer).__name__.removeprefix('Slim')}",
                *(" x ".join(map(str, shape)) for shape in printed),
                *(" x ".join(map(str, shape)) for shape in shapes),
            ]
        )
        comparisons += [
            Comparison(f"layer {number} at {width}x", prod(ours), paper=prod(theirs))
            for width, ours, theirs in zip(WIDTHS, shapes, printed, strict=True)
        ]
    return Exhibit(
        name="table1",
        title="Table I: UL-MobileNet",
        paper="Five convolutions with ReLU6 and a linear layer; the 0.5x network has the leading "
        "half of the channels of every layer.",
        table=Table(
            [
                "layer",
                "paper 1.0x (in x out x side)",
                "paper 0.5x",
                "ours 1.0x (out x in x side)",
                "ours 0.5x",
            ],
            rows,
        ),
        claims=[Claim("The number of weights in every layer", "table I", tuple(comparisons))],
        notes=["Depthwise layers have one input channel per filter. Convolutions have no bias."],
    )


TABLE1 = Recipe("table1", lambda scale: [], show)
