"""Pages made of measurements that are committed as small data files in docs/results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from two_modes import save

RESULTS = Path(__file__).parents[1] / "results"
BLUE, GREY = "#2a6f97", "#9a9a9a"
#: The work of which the README shows the speed: federated averaging, which all of them can do.
COMMON = "fedavg 10 x 500"
NAMES = {
    "native": "SlimFL, native engine",
    "slimfl-on-flower": "SlimFL on Flower and Ray",
    "torch": "SlimFL, torch engine",
    "fluke": "fluke",
    "flower": "Flower",
    "pfl": "pfl-research",
    "fedjax": "FedJAX",
}


def texts() -> dict[str, str]:
    """The tables of the recipe and of the bench."""
    bench = read("bench")
    return {
        "recipe": recipe_table(read("recipe")),
        "bench": "\n".join(bench_tables(bench)),
        "bench-summary": bench_summary(bench),
        "bench-methods": method_table(read("bench-methods")),
        "speed": speed_words(bench),
    }


def draw(folder: Path) -> None:
    """The pictures of the bench."""
    bench = read("bench")
    speed_picture(bench, folder / "speed.svg")
    bench_picture(bench, folder / "bench.svg")
    growth_picture(bench["growth"], folder / "bench-growth.svg")


def read(name: str) -> dict[str, Any]:
    """A committed result."""
    document: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return document


def recipe_table(document: dict[str, Any]) -> str:
    """One row per recipe; what differs from the first is set in bold."""
    base, keys = (
        document["recipes"][0],
        ("initialisation", "normalise", "batch_size", "optimiser_state"),
    )
    lines = [
        f"`{document['command']}`: {document['rounds']} rounds, "
        f"{document['images_per_device_and_round']:,} images per device and round, learning rate "
        f"1e-3, {document['radio__channel']} channel, alpha = {document['data__alpha']:g}, "
        f"{len(document['seeds'])} seeds.",
        "",
        "| initialisation | input | batch | moments | 0.5x, % | 1.0x, % |",
        "|---|---|---|---|---|---|",
    ]
    for recipe in document["recipes"]:
        cells = [
            f"**{recipe[key]}**" if recipe[key] != base[key] else f"{recipe[key]}" for key in keys
        ]
        scores = [
            f"{100 * score['mean']:.1f} ± {100 * score['deviation']:.1f}"
            for score in recipe["accuracy"].values()
        ]
        lines.append(f"| {' | '.join(cells + scores)} |")
    return "\n".join([*lines, ""])


def spread(value: dict[str, float] | None, form: str) -> str:
    """Median and range."""
    if value is None:
        return ""
    return f"{value['median']:{form}} ({value['min']:{form}} to {value['max']:{form}})"


def bench_tables(document: dict[str, Any]) -> list[str]:
    """One table per kind of work."""
    lines = []
    for kind, row in document["rows"].items():
        work = row["work"]
        ours = [name for name in ("native", "torch") if name in row["images_per_s"]]
        lines += [
            f"**{kind}**: {work['devices']} devices of {work['images_per_device']} images, batches "
            f"of {work['batch_size']}",
            "",
            f"| runner | images/s | {' | '.join(f'{n} speed-up' for n in ours)} "
            "| start-up, s | peak, MB |",
            "|---|---|" + "---|" * (len(ours) + 2),
        ]
        for name, rate in row["images_per_s"].items():
            ratios = [spread(row["ratios"].get(f"{a} / {name}"), ".2f") for a in ours]
            cells = [name, spread(rate, ",.0f"), *ratios]
            cells += [f"{row['startup_s'][name]:.1f}", f"{row['peak_mb'][name]:,.0f}"]
            lines.append(f"| {' | '.join(cells)} |")
        lines += [f"| {name} | failed: {why} |" for name, why in row.get("failed", {}).items()]
        lines.append("")
        if "flower_overhead_ms" in row:
            more = spread(row["flower_overhead_ms"], ".1f")
            lines += [f"Through Flower and Ray, a device takes {more} ms longer per round.", ""]
    return lines


def method_table(document: dict[str, Any]) -> str:
    """A row per method: what one of its rounds costs."""
    work = document["methods"]["work"]
    lines = [
        f"{work['devices']} devices of {work['images_per_device']} images, "
        f"{work['weak_share']:.0%} of them weak, on {document['machine']['cores']} cores "
        f"({document['machine']['native']}); medians of {document['repetitions']} interleaved "
        "repetitions, with the smallest and the largest.",
        "",
        "| method | engine | s/round | times SlimFL's | images/s | million multiply-adds/round |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in document["methods"]["rows"].items():
        cells = [
            f"`{name}`",
            row["engine"],
            spread(row["seconds_per_round"], ".3f"),
            spread(row["times_slimfl"], ".2f"),
            spread(row["images_per_s"], ",.0f"),
            f"{row['multiply_adds_per_round'] / 1e6:,.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def bench_summary(document: dict[str, Any]) -> str:
    """The ratios that matter, in words."""
    share = document["evaluation"]["share_of_a_round"]["median"]
    limit = document["rows"]["sustrain"]["fma_limit_gflops"]["median"]
    return (
        f"On {document['machine']['cores']} cores, medians of {document['repetitions']} "
        f"interleaved repetitions of SUSTrain: the native engine is "
        f"**{document['native_over_best_torch']:.1f} times** as fast as the best bare PyTorch loop "
        f"and **{document['native_over_plain_torch']:.1f} times** as fast as the plain one, and "
        f"reaches **{document['fma_fraction']:.0%}** of the limit of fused multiply-adds "
        f"({limit:,.0f} GFLOPS in the same run). The torch engine is "
        f"**{document['torch_over_best_torch']:.2f} times** as fast as the best bare PyTorch loop "
        f"and {document['torch_over_plain_torch']:.2f} times as fast as the plain one. Evaluating "
        f"10,000 images at both widths takes {share:.1%} of the time of a 60,000-image round.\n"
    )


def speed_words(document: dict[str, Any]) -> str:
    """What the README's bars show."""
    work = document["rows"][COMMON]["work"]
    return (
        f"Images trained per second in federated averaging of UL-MobileNet on {work['devices']} "
        f"devices with {work['images_per_device']} images each, on {document['machine']['cores']} "
        f"cores: medians of {document['repetitions']} interleaved repetitions, with each of the "
        f"other frameworks running its own simulation. In superposition training the native engine "
        f"is **{document['native_over_best_torch']:.1f} times** as fast as the best PyTorch loop "
        f"we could write. See [how it is measured, and where it loses](docs/benchmarks.md)."
    )


def speed_picture(document: dict[str, Any], path: Path) -> None:
    """Bars for the README."""
    rates = document["rows"][COMMON]["images_per_s"]
    names = [name for name in NAMES if name in rates][::-1]
    middle = [rates[name]["median"] for name in names]
    ours = ("native", "torch", "slimfl-on-flower")
    figure, ax = plt.subplots(figsize=(7.2, 2.4), layout="constrained")
    bars = ax.barh(
        [NAMES[name] for name in names], middle, color=[BLUE if n in ours else GREY for n in names]
    )
    ax.bar_label(bars, [f"{value:,.0f}" for value in middle], padding=4, fontsize=9)
    ax.set_xlim(0, 1.1 * max(middle))
    ax.xaxis.set_visible(False)
    ax.tick_params(left=False)
    ax.spines[:].set_visible(False)
    save(figure, path)
    plt.close(figure)


def bench_picture(document: dict[str, Any], path: Path) -> None:
    """Images per second, one panel per kind of work."""
    rows = document["rows"]
    figure, axes = plt.subplots(
        len(rows), 1, figsize=(7.2, 1.7 * len(rows)), layout="constrained", squeeze=False
    )
    for ax, (kind, row) in zip(axes[:, 0], rows.items(), strict=True):
        names = list(row["images_per_s"])[::-1]
        values = [row["images_per_s"][name] for name in names]
        middle = [value["median"] for value in values]
        reach = [
            [m - value["min"] for m, value in zip(middle, values, strict=True)],
            [value["max"] - m for m, value in zip(middle, values, strict=True)],
        ]
        colours = [
            BLUE if name in {"native", "torch", "slimfl-on-flower"} else GREY for name in names
        ]
        ax.barh(names, middle, xerr=reach, color=colours, ecolor="#333333", capsize=3)
        ax.set_title(kind, loc="left", fontsize=10)
        ax.spines[["top", "right"]].set_visible(False)
    axes[-1, 0].set_xlabel("images per second (median, whiskers from smallest to largest)")
    save(figure, path)
    plt.close(figure)


def growth_picture(growth: dict[str, Any], path: Path) -> None:
    """How the native engine's speed depends on population, local images and widths."""
    figure, axes = plt.subplots(1, len(growth), figsize=(7.2, 2.6), layout="constrained")
    for ax, (axis, rows) in zip(axes, growth.items(), strict=True):
        middle = [row["images_per_s"]["median"] for row in rows.values()]
        ax.plot(range(len(rows)), middle, "o-", color=BLUE)
        ax.fill_between(
            range(len(rows)),
            [row["images_per_s"]["min"] for row in rows.values()],
            [row["images_per_s"]["max"] for row in rows.values()],
            color=BLUE,
            alpha=0.2,
        )
        labels = [name.split()[-1] if "=" in name else f"{int(name.split()[0]):,}" for name in rows]
        ax.set_xticks(range(len(rows)), labels, rotation=30)
        ax.set(title=axis, ylim=(0, None))
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("images per second")
    save(figure, path)
    plt.close(figure)
