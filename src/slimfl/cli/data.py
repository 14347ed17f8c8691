"""`slimfl data`: list, fetch and look at datasets."""

from pathlib import Path
from typing import Annotated

import typer

from slimfl.cli.output import Json, aside, show, show_json

data = typer.Typer(
    help="Datasets: list them, fetch one, show how devices share one.", no_args_is_help=True
)

Dir = Annotated[Path | None, typer.Option(help="Where the dataset's files are.")]


@data.command("list")
def list_(json: Json = False) -> None:
    """The datasets known by name, and where their files are."""
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
        table.add_row(name, where or f"not here yet; `slimfl data fetch {name}`")
    show(table)


@data.command()
def fetch(
    name: Annotated[str, typer.Argument()] = "fashion-mnist",
    data_dir: Dir = None,
    json: Json = False,
) -> None:
    """Obtain a dataset and verify its checksums."""
    from slimfl.data import SOURCES, load, locate
    from slimfl.errors import RequestError

    if name not in SOURCES:
        raise RequestError(f"there is no dataset {name!r} to fetch; choose {', '.join(SOURCES)}")
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


@data.command("show")
def show_partition(
    dataset: Annotated[str, typer.Option()] = "fashion-mnist",
    alpha: Annotated[float | None, typer.Option(help="Dirichlet concentration.")] = None,
    devices: Annotated[int | None, typer.Option()] = None,
    partition: Annotated[
        str | None, typer.Option(help="dirichlet, dirichlet-equal, iid or shards.")
    ] = None,
    seed: Annotated[int, typer.Option()] = 0,
    data_dir: Dir = None,
    out: Annotated[Path, typer.Option(help="The figure to write.")] = Path("figures/partition.png"),
    json: Json = False,
) -> None:
    """Draw how many samples of each class every device holds: the paper's figure 3."""
    from slimfl import config
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

    table = Table("device", *map(str, range(loaded.classes)), "samples", title=title)
    for device, row in enumerate(counts):
        table.add_row(str(device), *map(str, row), str(row.sum()))
    show(table)
    aside().print(f"figure: {figure}", highlight=False, soft_wrap=True)
