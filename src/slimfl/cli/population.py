"""`slimfl population`: who the devices of an experiment are."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slimfl.cli.output import Json, check_writable, finite, remark, show, show_json, table
from slimfl.cli.plain_help import PlainGroup
from slimfl.cli.settings import Set, Source, Trust, allow, described, with_settings

if TYPE_CHECKING:
    from slimfl.round.prospect import Prospect

population = typer.Typer(
    help="Show the devices of an experiment.", no_args_is_help=True, cls=PlainGroup
)

#: Maximum number of devices listed one by one in JSON.
MOST_LISTED = 10_000


@population.callback()
def _population() -> None:
    """Show the devices of an experiment."""


ShowCommand = with_settings("population.preset", "federation.devices", "method", "seed")


@population.command("show", cls=ShowCommand)
def show_population(
    experiment: Source = None,
    set_: Set = None,
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
    from slimfl.devices import write_devices
    from slimfl.errors import RequestError
    from slimfl.round.prospect import prospect

    allow(trust)
    one = described(experiment, set_)
    if out is not None:
        check_writable(out, ".png", ".pdf", ".svg")
    if csv is not None:
        check_writable(csv)
    seen, widths = prospect(one), one.model.widths
    if csv is not None:
        write_devices(csv, seen.population, widths)
    if out is not None:
        from slimfl.report.figures.drawing import save
        from slimfl.report.figures.runs import cell_figure

        if seen.delivered is None:
            raise RequestError(
                "there is no formula for how often these devices are heard; omit --out"
            )
        save(cell_figure(seen.population, seen.delivered, widths), out)
    document = {
        "devices": len(seen.population),
        "method": one.method,
        "classes": list(_classes(seen, widths)),
    }
    if json:
        show_json({**document, "devices_listed": _listed(seen, widths)})
        return
    show(_table(document))
    for path in filter(None, (out, csv)):
        remark(f"written: {path}")


#: Columns of a population that a class spreads over, with their headings and units in the table.
SPREAD = {
    "distance_m": ("distance\nm", 1.0),
    "power_dbm": (None, 1.0),
    "macs_per_s": ("speed\nMMAC/s", 1e-6),
    "battery_j": ("battery\nJ", 1.0),
    "availability": ("reachable\n%", 100.0),
}


def _classes(seen: "Prospect", widths: tuple[float, ...]) -> Any:
    import numpy as np

    devices = seen.population
    for index, name in enumerate(devices.class_names):
        rows = np.flatnonzero(devices.device_class == index)
        if not len(rows):
            continue
        some = devices.take(rows)
        heard = None if seen.delivered is None else seen.delivered[rows].T
        counts = np.bincount(some.max_width, minlength=len(widths)).tolist()
        yield {
            "class": name,
            "devices": len(rows),
            "max_width": {f"{w}x": n for w, n in zip(widths, counts, strict=True) if n},
            **{column: _spread(getattr(some, column)) for column in SPREAD},
            "heard": None if heard is None else [_spread(segment) for segment in heard],
        }


def _spread(column: Any) -> dict[str, float | None]:
    import numpy as np

    low, high = column.min(), column.max()
    values = {"lowest": low, "median": np.median(column), "highest": high, "mean": column.mean()}
    return {name: finite(float(value)) for name, value in values.items()}


def _listed(seen: "Prospect", widths: tuple[float, ...]) -> list[dict[str, Any]]:
    """The first devices, one by one."""
    heard = seen.delivered
    return [
        {
            "device": device.id,
            "class": device.device_class,
            "max_width": widths[device.max_width],
            "x_m": device.x_m,
            "y_m": device.y_m,
            **{column: finite(getattr(device, column)) for column in SPREAD},
            "energy": device.energy,
            "data_share": device.data_share,
            "heard": None if heard is None else heard[row].tolist(),
        }
        for row, device in enumerate(seen.population.take(slice(0, MOST_LISTED)))
    ]


def _table(document: dict[str, Any]) -> Any:
    rows = []
    for one in document["classes"]:
        widths = "\n".join(f"{width}: {count:,}" for width, count in one["max_width"].items())
        heard = [_range(spread, 100) for spread in one["heard"] or []]
        rows.append(
            {
                "class": one["class"],
                "devices": one["devices"],
                "trains\nup to": widths,
                **{head: _range(one[key], unit) for key, (head, unit) in SPREAD.items() if head},
                "heard\n%": "\n".join(heard) or "unknown",
            }
        )
    return table(
        rows,
        f"{document['devices']:,} devices",
        "lowest..median..highest; heard: % of rounds in which a device that is asked is decoded, "
        f"with {document['method']}, one line per segment",
    )


def _range(spread: dict[str, float | None], factor: float = 1.0) -> str:
    lowest, median, highest = (spread[key] for key in ("lowest", "median", "highest"))
    if lowest is None or median is None or highest is None:
        return "unlimited"
    low, middle, high = (_short(factor * value) for value in (lowest, median, highest))
    return low if low == high else f"{low}..{middle}..{high}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2g}"
