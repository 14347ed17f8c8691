"""`slimfl data` and `slimfl population`: what devices hold, and who they are."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from slimfl.cli.output import Reply, check_writable, finite, table
from slimfl.cli.settings import DataDir, Set, Source, Trust, allow, command, described
from slimfl.data import SOURCES, load, load_section, locate, partition
from slimfl.devices import write_devices
from slimfl.errors import RequestError
from slimfl.report.figures.drawing import save
from slimfl.report.figures.runs import cell_figure, partition_figure
from slimfl.round.expected import Prospect, prospect

#: Maximum number of devices listed one by one in JSON.
MOST_LISTED = 10_000


def places() -> dict[str, str | None]:
    """The datasets known by name, and where they are; None if they are not there yet."""
    found: dict[str, str | None] = {}
    for name in SOURCES:
        try:
            found[name] = str(locate(name, fetch=False))
        except RequestError:
            found[name] = None
    return found


def how_to_fetch(name: str) -> str:
    """What to do about a dataset that is not there."""
    return f"not downloaded yet; run `slimfl data fetch {name}`"


@command()
def list_() -> Reply:
    """List the datasets known by name and where they are."""
    found = {"synthetic": "made on the spot", **places()}
    rows = [{"dataset": name, "files": at or how_to_fetch(name)} for name, at in found.items()]
    return Reply(found, [table(rows)])


@command()
def fetch(
    name: Annotated[str, typer.Argument(help="fashion-mnist or mnist.")] = "fashion-mnist",
    data_dir: DataDir = None,
) -> Reply:
    """Find or download a dataset and verify its checksums."""
    if name not in SOURCES:
        raise RequestError(f"there is no dataset {name!r} to download; choose {', '.join(SOURCES)}")
    folder, found = locate(name, data_dir), load(name, data_dir)
    counts = {"train": len(found.train), "test": len(found.test)}
    words = f"{counts['train']:,} + {counts['test']:,} samples in {folder}, verified"
    document = {"dataset": name, "folder": folder, **counts, "sha256": found.checksum}
    return Reply(document, [f"{name}: {words}"])


@command(
    "data.dataset", "data.alpha", "federation.devices", "data.partition", "seed", "data.dir",
    data_dir="search, then download",
)  # fmt: skip
def show_partition(
    experiment: Source = None,
    out: Annotated[Path, typer.Option(help="File for the figure.")] = Path("figures/partition.png"),
    set_: Set = None,
) -> Reply:
    """Draw how many samples of each class every device holds.

    This is the paper's figure 3.
    """
    one = described(experiment, set_)
    section, loaded = one.data, load_section(one.data)
    labels = loaded.train.labels
    dealt = partition(labels, one.federation.devices, section, one.seed)
    counts = dealt.class_counts(labels, loaded.classes).tolist()
    title = f"{loaded.name}, {section.partition}"
    if section.partition.startswith("dirichlet"):
        title += f", alpha = {section.alpha:g}"
    figure = save(partition_figure(counts, title), out)
    rows = [
        {"device": str(device), **{str(k): count for k, count in enumerate(row)}, "all": sum(row)}
        for device, row in enumerate(counts)
    ]
    document = {"class_counts": counts, "figure": figure}
    return Reply(document, [table(rows, title)], [f"figure: {figure}"])


@command("population.preset", "federation.devices", "method", "seed")
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
) -> Reply:
    """Show where the devices are and how often each would be heard."""
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
        if seen.delivered is None:
            raise RequestError(
                "there is no formula for how often these devices are heard; omit --out"
            )
        save(cell_figure(seen.population, seen.delivered, widths), out)
    classes, count = list(_classes(seen, widths)), len(seen.population)
    document = {
        "devices": count,
        "method": one.method,
        "classes": classes,
        "devices_listed": _listed(seen, widths),
    }
    caption = (
        "lowest..median..highest; heard: % of rounds in which a device that is asked is decoded, "
        f"with {one.method}, one line per segment"
    )
    shown = table(list(map(_row, classes)), f"{count:,} devices", caption)
    return Reply(document, [shown], [f"written: {path}" for path in (out, csv) if path])


#: Columns of a population that a class spreads over, with their headings and units in the table.
SPREAD = {
    "distance_m": ("distance\nm", 1.0),
    "power_dbm": (None, 1.0),
    "macs_per_s": ("speed\nMMAC/s", 1e-6),
    "battery_j": ("battery\nJ", 1.0),
    "availability": ("reachable\n%", 100.0),
}


def _classes(seen: Prospect, widths: tuple[float, ...]) -> Iterator[dict[str, Any]]:
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
    low, high = column.min(), column.max()
    values = {"lowest": low, "median": np.median(column), "highest": high, "mean": column.mean()}
    return {name: finite(float(value)) for name, value in values.items()}


def _listed(seen: Prospect, widths: tuple[float, ...]) -> list[dict[str, Any]]:
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


def _row(one: dict[str, Any]) -> dict[str, Any]:
    """One class in the table."""
    return {
        "class": one["class"],
        "devices": one["devices"],
        "trains\nup to": "\n".join(f"{width}: {n:,}" for width, n in one["max_width"].items()),
        **{heading: _range(one[key], unit) for key, (heading, unit) in SPREAD.items() if heading},
        "heard\n%": "\n".join(_range(each, 100) for each in one["heard"] or []) or "unknown",
    }


def _range(spread: dict[str, float | None], factor: float) -> str:
    values = [spread[key] for key in ("lowest", "median", "highest")]
    known = [factor * value for value in values if value is not None]
    if len(known) < len(values):
        return "unlimited"
    shown = [f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2g}" for value in known]
    return shown[0] if shown[0] == shown[-1] else "..".join(shown)
