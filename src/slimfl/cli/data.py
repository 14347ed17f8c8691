"""`slimfl data`: list, fetch and look at datasets."""

from pathlib import Path
from typing import Annotated

import typer

from slimfl.cli.output import DataDir, Json, remark, show, show_json, table
from slimfl.cli.plain_help import PlainCommand, PlainGroup
from slimfl.cli.settings import Set, Source, described, with_settings

data = typer.Typer(cls=PlainGroup, help="List, download and show datasets.", no_args_is_help=True)


def places() -> dict[str, str | None]:
    """The datasets known by name, and where they are; None if they are not there yet."""
    from slimfl.data import SOURCES, locate
    from slimfl.errors import RequestError

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


@data.command("list", cls=PlainCommand)
def list_(json: Json = False) -> None:
    """List the datasets known by name and where they are."""
    found = {"synthetic": "made on the spot", **places()}
    if json:
        show_json(found)
    else:
        show(table([{"dataset": n, "files": at or how_to_fetch(n)} for n, at in found.items()]))


@data.command(cls=PlainCommand)
def fetch(
    name: Annotated[str, typer.Argument(help="fashion-mnist or mnist.")] = "fashion-mnist",
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Find or download a dataset and verify its checksums."""
    from slimfl.data import SOURCES, load, locate
    from slimfl.errors import RequestError

    if name not in SOURCES:
        raise RequestError(f"there is no dataset {name!r} to download; choose {', '.join(SOURCES)}")
    folder = locate(name, data_dir)
    dataset = load(name, data_dir)
    train, test = len(dataset.train), len(dataset.test)
    if json:
        show_json(
            {
                "dataset": name,
                "folder": str(folder),
                "train": train,
                "test": test,
                "sha256": dataset.checksum,
            }
        )
    else:
        show(f"{name}: {train:,} + {test:,} samples in {folder}, verified")


ShowCommand = with_settings(
    "data.dataset", "data.alpha", "federation.devices", "data.partition", "seed", "data.dir",
    data_dir="search, then download",
)  # fmt: skip


@data.command("show", cls=ShowCommand)
def show_partition(
    experiment: Source = None,
    out: Annotated[Path, typer.Option(help="File for the figure.")] = Path("figures/partition.png"),
    set_: Set = None,
    json: Json = False,
) -> None:
    """Draw how many samples of each class every device holds.

    This is the paper's figure 3.
    """
    from slimfl.data import load_section
    from slimfl.data import partition as deal
    from slimfl.report.figures.drawing import save
    from slimfl.report.figures.runs import partition_figure

    one = described(experiment, set_)
    section, loaded = one.data, load_section(one.data)
    dealt = deal(loaded.train.labels, one.federation.devices, section, one.seed)
    counts = dealt.class_counts(loaded.train.labels, loaded.classes).tolist()
    title = f"{loaded.name}, {section.partition}"
    if section.partition.startswith("dirichlet"):
        title += f", alpha = {section.alpha:g}"
    figure = save(partition_figure(counts, title), out)
    if json:
        show_json({"class_counts": counts, "figure": str(figure)})
        return
    rows = [
        {"device": str(device), **{str(k): count for k, count in enumerate(row)}, "all": sum(row)}
        for device, row in enumerate(counts)
    ]
    show(table(rows, title))
    remark(f"figure: {figure}")
