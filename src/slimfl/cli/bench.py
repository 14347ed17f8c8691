"""`slimfl bench`: engines side by side."""

from typing import Annotated

import typer

from slimfl.cli.output import Json, aside, show, show_json


def bench(
    repetitions: Annotated[int, typer.Option(min=2)] = 7,
    images: Annotated[int, typer.Option(help="Images a repetition.", min=64)] = 1920,
    json: Json = False,
) -> None:
    """Time the engines on the same work in interleaved repetitions; compare ratios, not seconds."""
    from slimfl.bench import benchmark, tables

    document = benchmark(repetitions, images, tell=lambda text: aside().print(text))
    if json:
        show_json(document)
    else:
        show(tables(document))
