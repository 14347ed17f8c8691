"""The bench's results as tables."""

from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from benchmarks.suite import LABELS


def tables(document: dict[str, Any]) -> list[RenderableType]:
    """One table per kind of work, then the growth of the cost."""
    parts: list[RenderableType] = []
    for kind, row in document.get("rows", {}).items():
        parts.append(_runners(kind, row))
        if "flower_overhead_ms" in row:
            more = _range(row["flower_overhead_ms"], ".1f")
            parts.append(f"through Flower and Ray, a device takes {more} ms longer per round")
    if "methods" in document:
        parts.append(_methods(document["methods"]))
    if "growth" in document:
        parts += [_growth(document["growth"]), _summary(document)]
    return parts


def _runners(kind: str, row: dict[str, Any]) -> Table:
    work = row["work"]
    table = Table(
        title=f"{kind}: {work['devices']} devices of {work['images_per_device']} images, "
        f"batches of {work['batch_size']}; median (smallest - largest)"
    )
    table.add_column("runner")
    ours = [name for name in ("native", "torch") if name in row["images_per_s"]]
    headings = ("images/s", *(f"{name} speed-up" for name in ours), "start-up s", "peak MB")
    for heading in headings:
        table.add_column(heading, justify="right")
    for name, rate in row["images_per_s"].items():
        table.add_row(
            LABELS.get(name, name),
            _range(rate, ",.0f"),
            *(_range(row["ratios"].get(f"{a} / {name}"), ".2f") for a in ours),
            f"{row['startup_s'][name]:.1f}",
            f"{row['peak_mb'][name]:,.0f}",
        )
    for name, reason in row.get("failed", {}).items():
        table.add_row(name, f"failed: {reason}")
    return table


def _methods(measured: dict[str, Any]) -> Table:
    work = measured["work"]
    table = Table(
        title=f"every method: {work['devices']} devices of {work['images_per_device']} images, "
        f"{work['weak_share']:.0%} of them weak; median (smallest - largest)"
    )
    for heading in ("method", "engine"):
        table.add_column(heading)
    for heading in ("s/round", "times SlimFL's", "images/s", "million multiply-adds/round"):
        table.add_column(heading, justify="right")
    for name, row in measured["rows"].items():
        table.add_row(
            name,
            row["engine"],
            _range(row["seconds_per_round"], ".3f"),
            _range(row["times_slimfl"], ".2f"),
            _range(row["images_per_s"], ",.0f"),
            f"{row['multiply_adds_per_round'] / 1e6:,.0f}",
        )
    return table


def _growth(growth: dict[str, Any]) -> Table:
    table = Table(title="native engine: how the cost grows")
    table.add_column("")
    for heading in ("images/s", "peak MB"):
        table.add_column(heading, justify="right")
    for axis, rows in growth.items():
        table.add_row(Text(axis, "bold"))
        for name, row in rows.items():
            table.add_row(name, _range(row["images_per_s"], ",.0f"), f"{row['peak_mb']:,.0f}")
    return table


def _summary(document: dict[str, Any]) -> str:
    share = document["evaluation"]["share_of_a_round"]["median"]
    return (
        f"SUSTrain: native is {document['native_over_best_torch']:.2f}x the best bare PyTorch, "
        f"{document['native_over_plain_torch']:.2f}x the plain one, and "
        f"{document['fma_fraction']:.0%} of the FMA limit; the torch engine is "
        f"{document['torch_over_best_torch']:.2f}x the best bare one. Evaluating 10,000 images at "
        f"both widths takes {share:.1%} of a round of 60,000."
    )


def _range(value: dict[str, float] | None, form: str) -> str:
    if value is None:
        return ""
    return f"{value['median']:{form}} ({value['min']:{form}} - {value['max']:{form}})"
