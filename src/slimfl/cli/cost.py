"""`slimfl cost`: the cost of every width and segment of a network."""

import math
from dataclasses import asdict
from typing import Annotated

import typer

from slimfl.cli.output import Json, floats, show, show_json, table
from slimfl.cli.settings import Set, described, with_settings

#: Table IV. Its 0.5x parameter count is half of the full one, which no sub-network has (E4), and
#: no stride or padding gives its multiply-adds (E5).
PAPER = {
    0.5: {"parameters": 2293, "multiply_adds": 790_000, "bits": 86_344},
    1.0: {"parameters": 4586, "multiply_adds": 2_760_000, "bits": 172_688},
}

#: Maximum number of values in an image, which passes through the network once per width.
MOST_VALUES = 1_000_000

CostCommand = with_settings("model.widths", "radio.bits_per_parameter")


def cost(
    model: Annotated[
        str,
        typer.Argument(
            help="ul-mobilenet, us-mobilenet, split-mix, resnet, mlp, or package.module:Name."
        ),
    ],
    image: Annotated[str, typer.Option(help="Channels, rows and columns of an image.")] = "1,28,28",
    set_: Set = None,
    json: Json = False,
) -> None:
    """Count parameters, multiply-adds and bits per width.

    For the paper's network, the table also shows the paper's numbers.
    """
    from slimfl import nn
    from slimfl.errors import RequestError

    shape = _shape(image)
    described_ = described(None, [f"model.name='{model}'", *(set_ or ())])
    section = described_.model
    network = nn.build(model, section.options, in_channels=shape[0], widths=section.widths)
    try:
        costs = nn.cost(network, section.widths, shape, described_.radio.bits_per_parameter)
    except RuntimeError as error:
        raise RequestError(f"{model!r} cannot process images of this size: {error}") from None
    comparable = model == "ul-mobilenet" and shape == (1, 28, 28)
    paper = {row.width: PAPER[row.width] for row in costs if comparable and row.width in PAPER}
    if json:
        document = [{**asdict(row), "paper": paper.get(row.width)} for row in costs]
        show_json({"model": model, "widths": document})
        return
    rows = []
    for row in costs:
        counted = {name.replace("_", "\n", 1): n for name, n in asdict(row).items()}
        rows.append({**counted, "width": f"{row.width}x"})
        if row.width in paper:
            told = {name.replace("_", "\n", 1): n for name, n in paper[row.width].items()}
            rows.append({**dict.fromkeys(counted), **told, "width": "paper"})
    show(table(rows, f"{model}, images {' x '.join(map(str, shape))}"))


def _shape(image: str) -> tuple[int, int, int]:
    """The channels, rows and columns in `1,28,28`."""
    from slimfl.errors import RequestError

    sizes = floats(image, "--image") or ()
    whole = [int(size) for size in sizes if 1 <= size <= MOST_VALUES and size == int(size)]
    if len(sizes) != 3 or len(whole) != 3 or math.prod(whole) > MOST_VALUES:
        raise RequestError(
            f"--image takes channels,rows,columns such as 1,28,28 with at most {MOST_VALUES:,} "
            f"values in all, not {image[:60]!r}"
        )
    channels, rows, columns = whole
    return channels, rows, columns
