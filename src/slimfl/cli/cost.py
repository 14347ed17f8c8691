"""`slimfl cost`: the cost of every width and segment of a network."""

import math
from dataclasses import asdict
from typing import Annotated

import typer

from slimfl.cli.output import Json, floats, show, show_json
from slimfl.cli.trusting import allow

#: Table IV. Its 0.5x parameter count is half of the full one, which no sub-network has (E4), and
#: no stride or padding gives its multiply-adds (E5).
PAPER = {
    0.5: {"parameters": 2293, "multiply_adds": 790_000, "bits": 86_344},
    1.0: {"parameters": 4586, "multiply_adds": 2_760_000, "bits": 172_688},
}


#: Maximum number of values in an image, which passes through the network once per width.
MOST_VALUES = 1_000_000


def cost(
    model: Annotated[
        str,
        typer.Argument(
            help="ul-mobilenet, us-mobilenet, split-mix, resnet, mlp, or package.module:Name."
        ),
    ],
    widths: Annotated[str, typer.Option(help="Widths, ascending, ending with 1.0.")] = "0.5,1.0",
    image: Annotated[str, typer.Option(help="Channels, rows and columns of an image.")] = "1,28,28",
    bits_per_parameter: Annotated[
        float, typer.Option(help="Bits per transmitted parameter.", min=1, max=1e6)
    ] = 32.0,
    json: Json = False,
) -> None:
    """Count parameters, multiply-adds and bits per width.

    For the paper's network, the table also shows the paper's numbers.
    """
    from slimfl import experiment as config
    from slimfl import nn
    from slimfl.errors import RequestError

    described = {
        "model": {"name": model, "widths": floats(widths, "--widths")},
        "radio": {"bits_per_parameter": bits_per_parameter},
    }
    listed = config.build(described).model
    channels, rows, columns = _shape(image)
    allow((), [model])
    network = nn.build(model, {}, in_channels=channels, widths=listed.widths)
    try:
        costs = nn.cost(network, listed.widths, (channels, rows, columns), bits_per_parameter)
    except RuntimeError as error:
        raise RequestError(f"{model!r} cannot process images of this size: {error}") from None
    comparable = model == "ul-mobilenet" and (channels, rows, columns) == (1, 28, 28)
    paper = {row.width: PAPER[row.width] for row in costs if comparable and row.width in PAPER}
    if json:
        document = [{**asdict(row), "paper": paper.get(row.width)} for row in costs]
        show_json({"model": model, "widths": document})
        return
    from rich.table import Table

    table = Table(title=f"{model}, images {channels} x {rows} x {columns}")
    headings = (
        "width",
        "parameters",
        "multiply-adds",
        "bits",
        "segment\nparameters",
        "segment\nbits",
    )
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in costs:
        table.add_row(
            f"{row.width}x",
            f"{row.parameters:,}",
            f"{row.multiply_adds:,}",
            f"{row.bits:,}",
            f"{row.segment_parameters:,}",
            f"{row.segment_bits:,}",
        )
        if row.width in paper:
            told = paper[row.width]
            table.add_row(
                "paper",
                f"{told['parameters']:,}",
                f"{told['multiply_adds']:,}",
                f"{told['bits']:,}",
                style="dim",
            )
    show(table)


def _shape(image: str) -> tuple[int, int, int]:
    """The channels, rows and columns in `1,28,28`."""
    from slimfl.errors import RequestError

    sizes = floats(image, "--image") or ()
    whole = [int(size) for size in sizes if 1 <= size <= MOST_VALUES and size == int(size)]
    if len(sizes) != 3 or len(whole) != 3 or math.prod(whole) > MOST_VALUES:
        shown = image if len(image) <= 60 else f"{image[:57]}..."
        raise RequestError(
            f"--image takes channels,rows,columns such as 1,28,28 with at most {MOST_VALUES:,} "
            f"values in all, not {shown!r}"
        )
    channels, rows, columns = whole
    return channels, rows, columns
