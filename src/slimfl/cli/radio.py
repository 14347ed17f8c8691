"""`slimfl link`: what a channel lets through, and which method suits it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slimfl.cli.output import Json, aside, finite, floats, show, show_json

if TYPE_CHECKING:
    from slimfl.config import RadioSection
    from slimfl.radio import Coding

Channel = Annotated[str | None, typer.Option(help="good or poor.", show_default="poor")]
Noise = Annotated[
    float | None,
    typer.Option(help="Noise power, instead of a channel.", show_default="the channel's"),
]
Efficiency = Annotated[
    str, typer.Option(help="u/W per segment in bit/s/Hz: one number, or one per segment.")
]
Split = Annotated[
    str | None,
    typer.Option(
        help="Power shares such as 0.8,0.2; optimal; or optimal-numeric.",
        show_default="0.8,0.2 for two segments, else optimal",
    ),
]
SegmentCount = Annotated[
    int | None,
    typer.Option(
        help="Number of segments.", min=1, max=32, show_default="as many as --split has, or 2"
    ),
]
Devices = Annotated[int, typer.Option(help="Number of devices.", min=1, max=1_000_000)]
Seed = Annotated[int, typer.Option(help="Seed of the draws.", min=0, max=2**63 - 1)]
Out = Annotated[Path, typer.Option(help="Folder for the figures.")]


def link(
    channel: Channel = None,
    noise_dbm: Noise = None,
    spectral_efficiency: Efficiency = "1.5",
    split: Split = None,
    segments: SegmentCount = None,
    devices: Devices = 10,
    power_dbm: Annotated[float, typer.Option(help="Transmit power of a device.")] = 23.0,
    distance_m: Annotated[float, typer.Option(help="From a device to the server.")] = 100.0,
    path_loss_exponent: Annotated[
        float, typer.Option(help="How fast the signal fades with the distance.")
    ] = 2.5,
    implementation_loss_db: Annotated[
        float, typer.Option(help="How far a real receiver is from the ideal one.")
    ] = 0.0,
    draws: Annotated[
        int, typer.Option(help="Simulated draws beside the formula.", min=1, max=10_000_000)
    ] = 10_000,
    seed: Seed = 0,
    waveform: Annotated[
        bool,
        typer.Option("--waveform", help="Compare real symbols, table and formula; minutes."),
    ] = False,
    out: Out = Path("figures"),
    json: Json = False,
) -> None:
    """Say what a channel lets through, and which method suits it.

    Prints thresholds, decoding probabilities and the best power split.
    """
    from slimfl.radio import (
        Superposition,
        decoding_frequencies,
        noise_to_power,
        optimal_split,
        optimal_split_numeric,
        outage_link,
        segment_rates,
        signal,
    )
    from slimfl.theory.bound import advise, inverse_probability_sum

    section, count = radio_section(
        channel,
        noise_dbm,
        spectral_efficiency,
        split,
        segments,
        power_dbm=power_dbm,
        distance_m=distance_m,
        path_loss_exponent=path_loss_exponent,
        implementation_loss_db=implementation_loss_db,
    )
    if waveform:
        from slimfl.cli.waveform_link import compare_waveform

        compare_waveform(section, count, draws, seed, json)
        return
    model = outage_link(section)
    rates = segment_rates(section, count)
    superposed = signal(section, tuple((i,) for i in range(count)), count).coding

    def describe(coding: "Coding", segments_per_message: int = 1) -> dict[str, Any]:
        probabilities = model.decoding_probabilities(coding)
        by_messages = inverse_probability_sum(probabilities)
        return {
            "split": list(coding.split),
            "spectral_efficiency": list(coding.spectral_efficiencies),
            "thresholds": coding.thresholds(model.noise_to_power).tolist(),
            "decoding_probabilities": probabilities.tolist(),
            "simulated": decoding_frequencies(model, coding, draws, seed).tolist(),
            "D_messages": finite(by_messages),
            "D_segments": finite(segments_per_message * by_messages),
        }

    widths = [(i + 1) / count for i in range(count)]
    advice = advise(section, widths, devices)
    closed = optimal_split(rates)
    numeric = optimal_split_numeric(rates, noise_to_power(section))
    document: dict[str, Any] = {
        "channel": section.channel,
        "noise_dbm": section.noise,
        "noise_to_power": model.noise_to_power,
        "slimfl": describe(superposed),
        "vanilla": {
            f"{round(width, 3)}x": describe(
                signal(section, (tuple(range(i + 1)),), count).coding, segments_per_message=i + 1
            )
            for i, width in enumerate(widths)
        },
        "optimal_split": describe(Superposition(rates, closed)),
        "optimal_split_numeric": describe(Superposition(rates, numeric)),
        "advice": {
            "method": advice.method,
            "reason": advice.reason,
            "D_segments": {name: finite(term) for name, term in advice.terms.items()},
        },
        "draws": draws,
        "figures": _draw(section, count, out),
    }
    if json:
        show_json(document)
    else:
        _show_link(document)


def radio_section(
    channel: str | None,
    noise_dbm: float | None,
    spectral_efficiency: str,
    split: str | None,
    segments: int | None,
    **values: Any,
) -> tuple["RadioSection", int]:
    """The radio section that the options describe, and the number of segments."""
    from slimfl import config
    from slimfl.errors import RequestError

    rates = floats(spectral_efficiency, "--spectral-efficiency") or ()
    shares: Any = split
    if split is not None and not split.startswith("optimal"):
        shares = floats(split, "--split")
    told = {len(rates)} - {1} | ({len(shares)} if isinstance(shares, tuple) else set())
    told |= {segments} if segments else set()
    if len(told) > 1:
        raise RequestError(
            "--segments, --split and --spectral-efficiency tell different numbers of segments; "
            "make them agree"
        )
    count = told.pop() if told else 2
    radio = {
        "channel": channel,
        "noise_dbm": noise_dbm,
        "spectral_efficiency": rates if len(rates) > 1 else rates[0],
        "split": shares,
        **values,
    }
    widths = [(i + 1) / count for i in range(count)]
    tree = {
        "model": {"widths": widths},
        "radio": {key: value for key, value in radio.items() if value is not None},
    }
    return config.build(tree).radio, count


def _draw(section: "RadioSection", count: int, out: Path) -> list[str]:
    from slimfl.radio import segment_rates
    from slimfl.report.figures import probability_figure, save, split_figure

    rates = segment_rates(section, count)
    paths = []
    if count > 1:
        paths.append(save(split_figure(section, rates), out / "link-split.png"))
    paths.append(save(probability_figure(section, rates), out / "link-probability.png"))
    return [str(path) for path in paths]


def _or_infinite(number: float | None) -> str:
    return "infinite" if number is None else f"{number:.4g}"


def _show_link(document: dict[str, Any]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        title_justify="left",
        title=f"Noise {document['noise_dbm']:g} dBm, c/P = {document['noise_to_power']:.4g}",
    )
    for heading in (
        "signal",
        "seg-\nments",
        "power",
        "bit/s/Hz",
        "gain\nneeded",
        "p",
        "simu-\nlated",
        "D",
    ):
        table.add_column(heading, justify="left" if heading == "signal" else "right")

    def rows(name: str, described: dict[str, Any], segments: list[str]) -> None:
        for i, segment in enumerate(segments):
            table.add_row(
                name if i == 0 else "",
                segment,
                f"{described['split'][i]:.3f}",
                f"{described['spectral_efficiency'][i]:g}",
                f"{described['thresholds'][i]:.4g}",
                f"{described['decoding_probabilities'][i]:.4f}",
                f"{described['simulated'][i]:.4f}",
                "" if i else _or_infinite(described["D_segments"]),
            )
        table.add_section()

    numbers = [str(i + 1) for i in range(len(document["slimfl"]["split"]))]
    rows("SlimFL", document["slimfl"], numbers)
    rows("SlimFL, best split\n(closed form)", document["optimal_split"], numbers)
    rows("SlimFL, best split\n(numeric)", document["optimal_split_numeric"], numbers)
    for i, (width, described) in enumerate(document["vanilla"].items(), 1):
        rows(f"Vanilla FL-{width}", described, ["1" if i == 1 else f"1-{i}"])
    show(
        table,
        Text.assemble(
            "Advice: ",
            (document["advice"]["method"], "bold"),
            f". {document['advice']['reason']}.",
        ),
    )
    aside().print(f"figures: {', '.join(document['figures'])}", highlight=False, soft_wrap=True)
