"""`slimfl population`: who the devices of an experiment are."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slimfl.cli.output import Json, aside, check_writable, finite, show, show_json
from slimfl.cli.plain_help import PlainCommand, PlainGroup
from slimfl.cli.trusting import Trust, allow

if TYPE_CHECKING:
    from slimfl.round.prospect import Prospect

population = typer.Typer(
    name="population",
    help="Show the devices of an experiment.",
    no_args_is_help=True,
    cls=PlainGroup,
)

#: Maximum number of devices listed one by one in JSON.
MOST_LISTED = 10_000


@population.callback()
def _population() -> None:
    """Show the devices of an experiment."""


@population.command("show", cls=PlainCommand)
def show_population(
    experiment: Annotated[
        Path | None, typer.Argument(help="A TOML file.", show_default="the defaults")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="paper, cell, phones or sensors.", show_default="paper")
    ] = None,
    devices: Annotated[
        int | None, typer.Option(help="Number of devices.", show_default="10")
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="Method whose signals are sent.", show_default="slimfl")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the random draws.", show_default="0")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Set any other key, e.g. radio.noise_dbm=-40; may be repeated."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File for a picture of the cell: .png, .pdf or .svg.", show_default="none"
        ),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(help="File for the table of devices.", show_default="none")
    ] = None,
    trust: Trust = None,
    json: Json = False,
) -> None:
    """Show where the devices are and how often each would be heard."""
    from slimfl import experiment as config
    from slimfl.devices import write_devices
    from slimfl.errors import RequestError
    from slimfl.round.prospect import prospect

    allow(trust, config.typed_names(set_ or (), method=method))
    experiments = config.load(
        experiment,
        set_ or (),
        population__preset=preset,
        federation__devices=devices,
        method=method,
        seed=seed,
    )
    first = experiments[0]
    for path in filter(None, (out, csv)):
        check_writable(path)
    if out is not None and out.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise RequestError(
            f"a figure cannot be written to {out}; end the name in .png, .pdf or .svg"
        )
    seen = prospect(first)
    if csv is not None:
        write_devices(csv, seen.population, first.model.widths)
    if out is not None:
        from slimfl.report import cell_figure, save

        if seen.delivered is None:
            raise RequestError(
                "there is no formula for how often these devices are heard; omit --out"
            )
        save(cell_figure(seen.population, seen.delivered, first.model.widths), out)
    document = _document(seen, first.model.widths, first.method)
    if json:
        show_json({**document, "devices_listed": _listed(seen, first.model.widths)})
    else:
        show(_table(document))
        for path in filter(None, (out, csv)):
            aside().print(f"written: {path}", highlight=False, soft_wrap=True)


def _document(seen: "Prospect", widths: tuple[float, ...], method: str) -> dict[str, Any]:
    import numpy as np

    devices = seen.population
    classes = []
    for index, name in enumerate(devices.class_names):
        rows = np.flatnonzero(devices.device_class == index)
        if not len(rows):
            continue
        some = devices.take(rows)
        heard = None if seen.delivered is None else seen.delivered[rows]
        counts = np.bincount(some.max_width, minlength=len(widths)).tolist()
        classes.append(
            {
                "class": name,
                "devices": len(rows),
                "max_width": {f"{w}x": n for w, n in zip(widths, counts, strict=True) if n},
                "distance_m": _spread(some.distance_m),
                "power_dbm": _spread(some.power_dbm),
                "macs_per_s": _spread(some.macs_per_s),
                "battery_j": _spread(some.battery_j),
                "availability": _spread(some.availability),
                "heard": None
                if heard is None
                else [_spread(heard[:, segment]) for segment in range(len(widths))],
            }
        )
    return {"devices": len(devices), "method": method, "classes": classes}


def _spread(column: Any) -> dict[str, float | None]:
    import numpy as np

    return {
        "lowest": finite(float(column.min())),
        "median": finite(float(np.median(column))),
        "highest": finite(float(column.max())),
        "mean": finite(float(column.mean())),
    }


def _listed(seen: "Prospect", widths: tuple[float, ...]) -> list[dict[str, Any]]:
    """The first devices, one by one."""
    listed = []
    for row, device in enumerate(seen.population.take(slice(0, MOST_LISTED))):
        listed.append(
            {
                "device": device.id,
                "class": device.device_class,
                "max_width": widths[device.max_width],
                "x_m": device.x_m,
                "y_m": device.y_m,
                "distance_m": device.distance_m,
                "power_dbm": device.power_dbm,
                "macs_per_s": finite(device.macs_per_s),
                "battery_j": finite(device.battery_j),
                "availability": device.availability,
                "energy": device.energy,
                "data_share": device.data_share,
                "heard": None if seen.delivered is None else seen.delivered[row].tolist(),
            }
        )
    return listed


def _table(document: dict[str, Any]) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(
        title=f"{document['devices']:,} devices",
        title_justify="left",
        caption="lowest..median..highest; heard: % of rounds in which a device that is asked is "
        f"decoded, with {document['method']}, one line per segment",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for heading in ("class", "devices", "trains\nup to", "distance\nm", "speed\nMMAC/s",
                    "battery\nJ", "reachable\n%", "heard\n%"):  # fmt: skip
        table.add_column(heading, justify="left" if heading == "class" else "right", no_wrap=True)
    for one in document["classes"]:
        heard = [_range(spread, 100) for spread in one["heard"] or []]
        table.add_row(
            one["class"],
            f"{one['devices']:,}",
            "\n".join(f"{width}: {count:,}" for width, count in one["max_width"].items()),
            _range(one["distance_m"]),
            _range(one["macs_per_s"], 1e-6),
            _range(one["battery_j"]),
            _range(one["availability"], 100),
            "\n".join(heard) or "unknown",
        )
    return table


def _range(spread: dict[str, float | None], factor: float = 1.0) -> str:
    lowest, median, highest = (spread[key] for key in ("lowest", "median", "highest"))
    if lowest is None or median is None or highest is None:
        return "unlimited"
    low, middle, high = (_short(factor * value) for value in (lowest, median, highest))
    return low if low == high else f"{low}..{middle}..{high}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2g}"
