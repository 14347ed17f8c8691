"""The bench's results as tables, for the terminal and for the documentation."""

from collections.abc import Iterator, Mapping
from typing import Any

#: A title, and rows with the same headings.
Titled = tuple[str, list[dict[str, str]]]
SUMMARY = {
    "native_over_best_torch": "native engine over the best bare PyTorch, times",
    "native_over_plain_torch": "native engine over plain PyTorch, times",
    "torch_over_best_torch": "torch engine over the best bare PyTorch, times",
    "fma_fraction": "native engine's part of the limit of fused multiply-adds",
}


def tables(document: Mapping[str, Any]) -> Iterator[Titled]:
    """One table per kind of work, the methods, the growth of the cost, and SUSTrain in short."""
    for kind, row in document.get("rows", {}).items():
        yield _runners(kind, row)
    if "methods" in document:
        yield _methods(document["methods"])
    if "growth" in document:
        yield "native engine: how the cost grows", [
            {"axis": axis, "": name, "images/s": _range(row["images_per_s"], ",.0f"),
             "peak, MB": f"{row['peak_mb']:,.0f}"}
            for axis, rows in document["growth"].items() for name, row in rows.items()
        ]  # fmt: skip
        share = document["evaluation"]["share_of_a_round"]["median"]
        told = {words: document[key] for key, words in SUMMARY.items()}
        told["evaluating 10,000 images at both widths, part of a round of 60,000"] = share
        rows = [{"in short": words, "": f"{value:.2f}"} for words, value in told.items()]
        yield "superposition training", rows


def _runners(kind: str, row: Mapping[str, Any]) -> Titled:
    work = row["work"]
    ours = [name for name in ("native", "torch") if name in row["images_per_s"]]
    rows = [
        {
            "runner": name,
            "images/s": _range(rate, ",.0f"),
            **{f"{a} speed-up": _range(row["ratios"].get(f"{a} / {name}"), ".2f") for a in ours},
            "start-up, s": f"{row['startup_s'][name]:.1f}",
            "peak, MB": f"{row['peak_mb'][name]:,.0f}",
        }
        for name, rate in row["images_per_s"].items()
    ]
    for name, reason in row.get("failed", {}).items():
        rows.append({**dict.fromkeys(rows[0], ""), "runner": name, "images/s": f"failed: {reason}"})
    title = (
        f"{kind}: {work['devices']} devices of {work['images_per_device']} images, batches of "
        f"{work['batch_size']}; median (smallest to largest)"
    )
    if "flower_overhead_ms" in row:
        more = _range(row["flower_overhead_ms"], ".1f")
        title += f"; through Flower and Ray, a device takes {more} ms longer per round"
    return title, rows


def _methods(measured: Mapping[str, Any]) -> Titled:
    work = measured["work"]
    rows = [
        {
            "method": name,
            "engine": row["engine"],
            "s/round": _range(row["seconds_per_round"], ".3f"),
            "times SlimFL's": _range(row["times_slimfl"], ".2f"),
            "images/s": _range(row["images_per_s"], ",.0f"),
            "million multiply-adds/round": f"{row['multiply_adds_per_round'] / 1e6:,.0f}",
        }
        for name, row in measured["rows"].items()
    ]
    title = (
        f"every method: {work['devices']} devices of {work['images_per_device']} images, "
        f"{work['weak_share']:.0%} of them weak; median (smallest to largest)"
    )
    return title, rows


def _range(value: Mapping[str, float] | None, form: str) -> str:
    if value is None:
        return ""
    return f"{value['median']:{form}} ({value['min']:{form}} to {value['max']:{form}})"
