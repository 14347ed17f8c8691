"""`slimfl export` and `slimfl cost`: files of a trained model, and what a network costs."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from slimfl import nn
from slimfl.cli.output import Reply, floats, remark, table
from slimfl.cli.settings import DataDir, Set, Speed, Trust, allow, command, described
from slimfl.errors import RequestError
from slimfl.export import exporting

#: Table IV. Its 0.5x parameter count is half of the full one, which no sub-network has (E4), and
#: no stride or padding gives its multiply-adds (E5).
PAPER = {
    0.5: {"parameters": 2293, "multiply_adds": 790_000, "bits": 86_344},
    1.0: {"parameters": 4586, "multiply_adds": 2_760_000, "bits": 172_688},
}

#: Maximum number of values in an image, which passes through the network once per width.
MOST_VALUES = 1_000_000


@command("model.widths", "radio.bits_per_parameter")
def cost(
    model: Annotated[
        str,
        typer.Argument(
            help="ul-mobilenet, us-mobilenet, split-mix, resnet, mlp, or package.module:Name."
        ),
    ],
    image: Annotated[str, typer.Option(help="Channels, rows and columns of an image.")] = "1,28,28",
    set_: Set = None,
) -> Reply:
    """Count parameters, multiply-adds and bits per width.

    For the paper's network, the table also shows the paper's numbers.
    """
    shape = _shape(image)
    asked = described(None, [f"model.name='{model}'", *(set_ or ())])
    section = asked.model
    network = nn.build(model, section.options, in_channels=shape[0], widths=section.widths)
    try:
        costs = nn.cost(network, section.widths, shape, asked.radio.bits_per_parameter)
    except RuntimeError as error:
        raise RequestError(f"{model!r} cannot process images of this size: {error}") from None
    paper = PAPER if model == "ul-mobilenet" and shape == (1, 28, 28) else {}
    rows = []
    for row in map(asdict, costs):
        rows.append({**row, "width": f"{row['width']}x"})
        if row["width"] in paper:
            rows.append({**dict.fromkeys(row), **paper[row["width"]], "width": "paper"})
    shown = [{name.replace("_", "\n", 1): number for name, number in row.items()} for row in rows]
    document = [{**asdict(row), "paper": paper.get(row.width)} for row in costs]
    return Reply(
        {"model": model, "widths": document},
        [table(shown, f"{model}, images {' x '.join(map(str, shape))}")],
    )


def _shape(image: str) -> tuple[int, int, int]:
    """The channels, rows and columns in `1,28,28`."""
    sizes = floats(image, "--image") or ()
    whole = [int(size) for size in sizes if 1 <= size <= MOST_VALUES and size == int(size)]
    if (len(sizes), len(whole)) != (3, 3) or math.prod(whole) > MOST_VALUES:
        raise RequestError(
            f"--image takes channels,rows,columns such as 1,28,28 with at most {MOST_VALUES:,} "
            f"values in all, not {image[:60]!r}"
        )
    channels, rows, columns = whole
    return channels, rows, columns


@command()
def export(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    width: Annotated[
        str | None, typer.Option(help="Widths, e.g. 0.5,1.0.", show_default="all widths of the run")
    ] = None,
    format: Annotated[
        str, typer.Option(help="onnx or safetensors (the weights alone), or both.")
    ] = "onnx",
    int8: Annotated[bool, typer.Option("--int8", help="Also write quantised ONNX files.")] = False,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure the latency of one image on one core.")
    ] = False,
    energy: Annotated[
        str,
        typer.Option(
            help="Energy preset: horowitz-45nm, kappa-1e-28, kappa-1e-27, raspberry-pi-4."
        ),
    ] = "horowitz-45nm",
    macs_per_s: Speed = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the files.", show_default="RUN/export")
    ] = None,
    data_dir: DataDir = None,
    trust: Trust = None,
) -> Reply:
    """Write each width as a file that works without slimfl."""
    allow(trust)
    folder = out or run / "export"
    manifest = exporting.export(
        run,
        folder,
        widths=floats(width, "--width"),
        formats=[name.strip() for name in format.split(",")],
        int8=int8,
        energy_preset=energy,
        macs_per_s=macs_per_s,
        measure=measure,
        data_dir=data_dir,
    )
    for model in manifest.models:
        if model.precision == "float32" and model.run_accuracy not in (None, model.accuracy):
            remark(
                f"{model.name}: the accuracy is {model.accuracy} here and {model.run_accuracy} in "
                "the run; another processor may round differently"
            )
    rows = [
        {
            "width": model.label,
            "bytes": sum(file.bytes for file in model.files),
            "para-\nmeters": model.parameters,
            "multiply-\nadds": model.multiply_adds,
            "accu-\nracy %": f"{100 * model.accuracy:.2f}",
            "points\nlost": None if (lost := model.accuracy_loss_points) is None else f"{lost:.2f}",
            "energy/\nimage": exporting.microjoules(model.joules_per_image),
            "ms/\nimage": None if model.latency_ms is None else f"{model.latency_ms:.3f}",
        }
        for model in manifest.models
    ]
    title = f"{manifest.model}, round {manifest.run.round}"
    caption = f"energy: preset {manifest.energy.preset}, a convention, not a measurement"
    return Reply(
        {"folder": folder, "manifest": manifest.model_dump(mode="json")},
        [table(rows, title, caption)],
        [f"export: {folder}"],
    )
