"""`slimfl data`: list, fetch and look at datasets."""

from pathlib import Path
from typing import Annotated

import typer

from slimfl.cli.output import DataDir, Json, aside, show, show_json
from slimfl.cli.plain_help import PlainCommand, PlainGroup

data = typer.Typer(
    cls=PlainGroup,
    help="List, download and show datasets.",
    no_args_is_help=True,
)


@data.command("list", cls=PlainCommand)
def list_(json: Json = False) -> None:
    """List the datasets known by name and where they are."""
    from slimfl.data import SOURCES, locate
    from slimfl.errors import RequestError

    found: dict[str, str | None] = {"synthetic": "made on the spot"}
    for name in SOURCES:
        try:
            found[name] = str(locate(name, fetch=False))
        except RequestError:
            found[name] = None
    if json:
        show_json(found)
        return
    from rich.table import Table

    table = Table("dataset", "files")
    for name, where in found.items():
        table.add_row(name, where or f"not downloaded yet; run `slimfl data fetch {name}`")
    show(table)


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
    document = {
        "dataset": name,
        "folder": str(folder),
        "train": len(dataset.train),
        "test": len(dataset.test),
        "sha256": dataset.checksum,
    }
    if json:
        show_json(document)
    else:
        show(
            f"{name}: {len(dataset.train):,} + {len(dataset.test):,} samples in {folder}, verified"
        )


@data.command("show", cls=PlainCommand)
def show_partition(
    dataset: Annotated[
        str, typer.Option(help="fashion-mnist, mnist, synthetic, or a folder of idx files.")
    ] = "fashion-mnist",
    alpha: Annotated[
        float | None,
        typer.Option(
            help="Dirichlet concentration; with smaller values, devices differ more.",
            show_default="1",
        ),
    ] = None,
    devices: Annotated[
        int | None, typer.Option(help="Number of devices.", show_default="10")
    ] = None,
    partition: Annotated[
        str | None,
        typer.Option(help="dirichlet, dirichlet-equal, iid or shards.", show_default="dirichlet"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the partition.")] = 0,
    data_dir: DataDir = None,
    out: Annotated[Path, typer.Option(help="File for the figure.")] = Path("figures/partition.png"),
    json: Json = False,
) -> None:
    """Draw how many samples of each class every device holds.

    This is the paper's figure 3.
    """
    from slimfl import experiment as config
    from slimfl.data import load_section
    from slimfl.data import partition as deal
    from slimfl.report.figures import partition_figure, save

    [experiment] = config.load(
        data__dataset=dataset,
        data__alpha=alpha,
        data__partition=partition,
        data__dir=data_dir,
        federation__devices=devices,
        seed=seed,
    )
    loaded = load_section(experiment.data)
    section = experiment.data
    dealt = deal(loaded.train.labels, experiment.federation.devices, section, experiment.seed)
    counts = dealt.class_counts(loaded.train.labels, loaded.classes)
    title = f"{loaded.name}, {section.partition}"
    if section.partition.startswith("dirichlet"):
        title += f", alpha = {section.alpha:g}"
    figure = save(partition_figure(counts.tolist(), title), out)
    if json:
        show_json({"class_counts": counts.tolist(), "figure": str(figure)})
        return
    from rich.table import Table

    table = Table("device", title=title)
    for heading in (*map(str, range(loaded.classes)), "samples"):
        table.add_column(heading, justify="right")
    for device, row in enumerate(counts):
        table.add_row(str(device), *map(str, row), str(row.sum()))
    show(table)
    aside().print(f"figure: {figure}", highlight=False, soft_wrap=True)
