"""`slimfl export` and `slimfl pick`: export a model, and choose its width."""

from pathlib import Path
from typing import Annotated

import typer

from slimfl.cli.output import Json, check_writable, floats, remark, show, show_json, table
from slimfl.cli.settings import Trust, allow

DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder with the run's dataset.", show_default="search, then download"),
]
Preset = Annotated[
    str,
    typer.Option(
        "--energy",
        help="Energy preset: horowitz-45nm, kappa-1e-28, kappa-1e-27, raspberry-pi-4.",
    ),
]
Speed = Annotated[
    float | None,
    typer.Option(
        "--macs-per-s",
        help="Multiply-adds per second of the device; all presets but horowitz-45nm need it.",
        show_default="none",
    ),
]


def export(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    width: Annotated[
        str | None, typer.Option(help="Widths, e.g. 0.5,1.0.", show_default="all widths of the run")
    ] = None,
    format: Annotated[
        str,
        typer.Option(help="onnx or safetensors (the weights alone), or both."),
    ] = "onnx",
    int8: Annotated[bool, typer.Option("--int8", help="Also write quantised ONNX files.")] = False,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure the latency of one image on one core.")
    ] = False,
    energy: Preset = "horowitz-45nm",
    macs_per_s: Speed = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the files.", show_default="RUN/export")
    ] = None,
    data_dir: DataDir = None,
    trust: Trust = None,
    json: Json = False,
) -> None:
    """Write each width as a file that works without slimfl."""
    from slimfl.export.exporting import export as export_run

    allow(trust)
    widths = floats(width, "--width")
    folder = out or run / "export"
    manifest = export_run(
        run,
        folder,
        widths=widths,
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
    if json:
        show_json({"folder": folder, "manifest": manifest.as_json()})
        return
    from slimfl.export.exporting import microjoules

    rows = [
        {
            "width": model.label,
            "bytes": sum(file.bytes for file in model.files),
            "para-\nmeters": model.parameters,
            "multiply-\nadds": model.multiply_adds,
            "accuracy\n%": f"{100 * model.accuracy:.2f}",
            "points\nlost": None if (lost := model.accuracy_loss_points) is None else f"{lost:.2f}",
            "energy per\nimage": microjoules(model.joules_per_image),
            "ms per\nimage": None if model.latency_ms is None else f"{model.latency_ms:.3f}",
        }
        for model in manifest.models
    ]
    show(
        table(
            rows,
            f"{manifest.model}, round {manifest.run.round}",
            f"energy: preset {manifest.energy.preset}, a convention, not a measurement",
        )
    )
    remark(f"export: {folder}")


def pick(
    run: Annotated[Path, typer.Argument(help="Run folder, or the folder of an export.")],
    max_macs: Annotated[
        float | None, typer.Option(help="Maximum multiply-adds per image.", show_default="no limit")
    ] = None,
    max_energy_j: Annotated[
        float | None, typer.Option(help="Maximum joules per image.", show_default="no limit")
    ] = None,
    min_accuracy: Annotated[
        float | None,
        typer.Option(
            help="Minimum accuracy on the test images, from 0 to 1.", show_default="no limit"
        ),
    ] = None,
    max_latency_ms: Annotated[
        float | None,
        typer.Option(
            help="Maximum milliseconds per image; measured now for a run folder.",
            show_default="no limit",
        ),
    ] = None,
    energy: Annotated[
        str | None,
        typer.Option(
            help="Energy preset for a run folder; an export has its own.",
            show_default="horowitz-45nm",
        ),
    ] = None,
    macs_per_s: Speed = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw accuracy against energy: .png, .pdf or .svg.", show_default="none"),
    ] = None,
    data_dir: DataDir = None,
    trust: Trust = None,
    json: Json = False,
) -> None:
    """Choose the best width within the given limits, and say why."""
    from dataclasses import asdict

    from slimfl.export.picking import Limits, offered, why_not
    from slimfl.export.picking import pick as pick_one

    allow(trust)
    limits = Limits(max_macs, max_energy_j, min_accuracy, max_latency_ms)
    limits.check()
    if plot is not None:
        check_writable(plot)
    measure = max_latency_ms is not None
    table = offered(run, energy, macs_per_s=macs_per_s, measure=measure, data_dir=data_dir)
    picked = pick_one(table.models, limits)
    if plot is not None:
        from slimfl.report.figures.drawing import save
        from slimfl.report.figures.runs import energy_figure

        points = [(one.label, one.joules_per_image, one.accuracy) for one in table.models]
        save(energy_figure(points, table.cascade, table.energy_preset), plot)
    if json:
        show_json(
            {
                "picked": picked.choice.model_dump(mode="json"),
                "why": picked.why,
                "limits": asdict(limits),
                "energy_preset": table.energy_preset,
                "latency_runtime": table.latency_runtime,
                "choices": [
                    {**one.model_dump(mode="json"), "broken": why_not(one, table.models, limits)}
                    for one in table.models
                ],
            }
        )
        return
    show(f"{picked.why} (energy preset {table.energy_preset})")
    for one in table.models:
        broken = why_not(one, table.models, limits)
        if broken:
            show(f"{one.name} does not fit: {', '.join(broken)}")
