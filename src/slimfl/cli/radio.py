"""`slimfl link`: what a channel lets through, and which method suits it."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slimfl.cli.output import Json, aside, finite, floats, show, show_json

if TYPE_CHECKING:
    from slimfl.experiment import RadioSection
    from slimfl.radio import Coding

Experiment = Annotated[
    Path | None,
    typer.Argument(help="A TOML file whose radio section and widths count.", show_default=False),
]

Channel = Annotated[str | None, typer.Option(help="good or poor.", show_default="poor")]
Noise = Annotated[
    float | None,
    typer.Option(help="Noise power, instead of a channel.", show_default="the channel's"),
]
Efficiency = Annotated[
    str | None,
    typer.Option(
        help="u/W per segment in bit/s/Hz: one number, or one per segment.", show_default="1.5"
    ),
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
    experiment: Experiment = None,
    channel: Channel = None,
    noise_dbm: Noise = None,
    spectral_efficiency: Efficiency = None,
    split: Split = None,
    segments: SegmentCount = None,
    devices: Devices = 10,
    power_dbm: Annotated[
        float | None, typer.Option(help="Transmit power of a device.", show_default="23.0")
    ] = None,
    distance_m: Annotated[
        float | None, typer.Option(help="From a device to the server.", show_default="100.0")
    ] = None,
    path_loss_exponent: Annotated[
        float | None,
        typer.Option(help="How fast the signal fades with the distance.", show_default="2.5"),
    ] = None,
    implementation_loss_db: Annotated[
        float | None,
        typer.Option(help="How far a real receiver is from the ideal one.", show_default="0.0"),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Any other key of the radio, e.g. radio.fading=rician; may be repeated."
        ),
    ] = None,
    draws: Annotated[
        int, typer.Option(help="Simulated draws beside the formula.", min=1, max=10_000_000)
    ] = 10_000,
    seed: Seed = 0,
    waveform: Annotated[
        bool,
        typer.Option("--waveform", help="Compare real symbols, table and formula; minutes."),
    ] = False,
    out: Out = Path("figures"),
    explore: Annotated[
        bool, typer.Option("--explore", help="Write one page with sliders instead: link.html.")
    ] = False,
    json: Json = False,
) -> None:
    """Say what a channel lets through, and which method suits it.

    Prints thresholds, decoding probabilities and the best power split.
    """
    from slimfl.radio import build_coding as coded
    from slimfl.radio import oddities, optimal_split, power_split, segment_rates, signal

    section, widths = radio_section(
        channel,
        noise_dbm,
        spectral_efficiency,
        split,
        segments,
        set_ or (),
        experiment,
        power_dbm=power_dbm,
        distance_m=distance_m,
        path_loss_exponent=path_loss_exponent,
        implementation_loss_db=implementation_loss_db,
    )
    _refuse_what_is_no_single_link(section)
    count = len(widths)
    if waveform:
        from slimfl.cli.waveform_link import compare_waveform

        compare_waveform(section, count, draws, seed, json)
        return
    if explore:
        from slimfl.report.explorer import write_explorer

        page = str(write_explorer(section, count, devices, out / "link.html"))
        show_json({"page": page}) if json else show(f"Open {page} in a browser.")
        return
    section = _with_sizes(section, widths)
    rates = segment_rates(section, count)
    cases = _cases(section)
    ratio = _mean_ratio(cases)

    def describe(coding: "Coding", segments_per_message: int = 1) -> dict[str, Any]:
        return _described(section, coding, ratio, segments_per_message, draws, seed)

    numeric = power_split(section.model_copy(update={"split": "optimal-numeric"}), rates)
    best = {"optimal_split_numeric": describe(coded(section, rates, numeric))}
    if section.multiplexing == "superposition" and not section.residual_interference:
        best = {"optimal_split": describe(coded(section, rates, optimal_split(rates))), **best}
    sent = signal(section, tuple((i,) for i in range(count)), count)
    document: dict[str, Any] = {
        "channel": section.channel,
        "noise_dbm": section.noise,
        "noise_to_power": ratio,
        "multiplexing": section.multiplexing,
        "cases": cases,
        "downlink": _downlink(section),
        "slimfl": describe(sent.coding),
        "warnings": oddities([sent]),
        "superposition_gains_at_most": _largest_gain(section, rates, ratio),
        "vanilla": {
            f"{round(width, 3)}x": describe(
                signal(section, (tuple(range(i + 1)),), count).coding, segments_per_message=i + 1
            )
            for i, width in enumerate(widths)
        },
        **best,
        "advice": _advice(section, widths, devices),
        "draws": draws,
        "figures": _draw(section, widths, devices, out),
    }
    if json:
        show_json(document)
    else:
        _show_link(document)


def _with_sizes(section: "RadioSection", widths: tuple[float, ...]) -> "RadioSection":
    """The section with the rates that the sizes of UL-MobileNet's segments give."""
    from slimfl.radio import paper_network_sizes, segment_bits, segment_rates

    bits = segment_bits(section, paper_network_sizes(widths)).tolist()
    rates = segment_rates(section, len(widths), bits)
    if len({*rates}) == 1:
        return section
    return section.model_copy(update={"rates": "equal", "spectral_efficiency": rates})


def _largest_gain(
    section: "RadioSection", rates: tuple[float, ...], ratio: float
) -> dict[str, float] | None:
    """What two superposed segments can deliver over the better of one message and the base alone.

    None where the formula does not hold: other fading, other decoders, more segments.
    """
    from slimfl.experiment import RadioSection
    from slimfl.radio.gain import largest_gain

    usual = RadioSection()
    same = ("fading", "decoder", "multiplexing", "residual_interference", "max_attempts")
    if (
        len(rates) != 2
        or ratio * 2 ** sum(rates) > 100  # the full model never arrives in one message
        or section.has_shadowing
        or section.path_loss in ("umi", "uma")
        or any(getattr(section, key) != getattr(usual, key) for key in same)
    ):
        return None
    share, worth = largest_gain(1 / ratio, rates)
    return {"share": max(0.0, share), "worth_of_base": worth}


def _described(
    section: "RadioSection",
    coding: "Coding",
    ratio: float,
    segments_per_message: int,
    draws: int,
    seed: int,
) -> dict[str, Any]:
    import numpy as np

    from slimfl.radio import (
        decoding_frequencies,
        inverse_probability_sum,
        possible_links,
        section_probabilities,
    )

    probabilities = section_probabilities(section, coding)
    by_messages = inverse_probability_sum(probabilities)
    simulated = np.sum(
        [
            weight * decoding_frequencies(link, coding, draws, seed)
            for weight, link in possible_links(section)
        ],
        axis=0,
    )
    return {
        "split": list(coding.split),
        "spectral_efficiency": coding.rates.tolist(),
        "thresholds": coding.thresholds(ratio).tolist(),
        "decoding_probabilities": probabilities.tolist(),
        "simulated": simulated.tolist(),
        "D_messages": finite(by_messages),
        "D_segments": finite(segments_per_message * by_messages),
    }


def _advice(section: "RadioSection", widths: tuple[float, ...], devices: int) -> dict[str, Any]:
    from slimfl.radio.bound import advise

    advice = advise(section, widths, devices)
    terms = {name: finite(term) for name, term in advice.terms.items()}
    return {
        "method": advice.method,
        "tie": advice.is_tie,
        "reason": advice.reason,
        "D_segments": terms,
    }


def _refuse_what_is_no_single_link(section: "RadioSection") -> None:
    from slimfl.errors import RequestError

    if section.model != "outage":
        raise RequestError(
            f"slimfl link describes radio.model = outage, and this is {section.model!r}; "
            "set it to outage"
        )
    if section.decoder == "table":
        raise RequestError(
            "slimfl link compares signals, and a decoder table was measured with one of them; "
            "set radio.decoder to outage or normal"
        )
    _refuse_what_depends_on_sizes(section)
    if section.users_per_slot > 1:
        raise RequestError(
            "slimfl link describes one device at a time; set radio.users_per_slot to 1"
        )
    if section.split == "per-device":
        raise RequestError(
            "slimfl link describes one device, so a split per device is the best one; "
            "set radio.split to optimal-numeric"
        )


def _refuse_what_depends_on_sizes(section: "RadioSection") -> None:
    """The sizes of the segments are those of the network, and a link has none.

    Under the paper's accounting all segments are equal, as is assumed here.
    """
    from slimfl.errors import RequestError

    rates = section.spectral_efficiency
    equal_rates = not isinstance(rates, tuple) or len(set(rates)) == 1
    if section.accounting == "paper" and equal_rates:
        return
    way_on = (
        "`slimfl population show` gives the probabilities of an experiment; for equal segments, "
        'set radio.accounting to "paper" and one radio.spectral_efficiency'
    )
    if section.multiplexing == "orthogonal-airtime":
        raise RequestError(
            'with radio.multiplexing = "orthogonal-airtime" the decoding probabilities depend on '
            f"the sizes of the segments, which a link does not have; {way_on}"
        )
    if section.split_objective == "delivered" and section.accounting != "paper":
        raise RequestError(
            'with radio.split_objective = "delivered" the best split depends on the sizes of the '
            f"segments, which a link does not have; {way_on}"
        )


def _cases(section: "RadioSection") -> list[dict[str, float]]:
    """The states that a link can be in: in line of sight or not, with 3GPP's path losses."""
    from slimfl.radio import possible_links

    return [
        {"probability": weight, "noise_to_power": link.noise_to_power}
        for weight, link in possible_links(section)
    ]


def _mean_ratio(cases: list[dict[str, float]]) -> float:
    """c / P; a mean in decibels over the cases."""
    if len(cases) == 1:
        return cases[0]["noise_to_power"]
    return math.exp(sum(case["probability"] * math.log(case["noise_to_power"]) for case in cases))


def _downlink(section: "RadioSection") -> dict[str, Any]:
    """How often a device hears the global model."""
    from slimfl.radio import section_probabilities, single

    if section.downlink == "perfect":
        return {"kind": "perfect", "decoding_probability": 1.0}
    server = {"power_dbm": section.downlink_power_dbm, "decoder": "outage", "max_attempts": 1}
    whole = single(section.downlink_spectral_efficiency)
    [heard] = section_probabilities(section.model_copy(update=server), whole).tolist()
    return {"kind": section.downlink, "decoding_probability": heard}


def radio_section(
    channel: str | None,
    noise_dbm: float | None,
    spectral_efficiency: str | None,
    split: str | None,
    segments: int | None,
    overrides: Iterable[str] = (),
    experiment: Path | None = None,
    **values: Any,
) -> tuple["RadioSection", tuple[float, ...]]:
    """The radio section that a file, overrides and options describe, and the widths."""
    from slimfl import experiment as config
    from slimfl.errors import RequestError

    file = config.read_toml(experiment) if experiment is not None else {}
    tree: dict[str, Any] = {"model": {}, "radio": file.get("radio", {})}
    if isinstance(file.get("model"), dict) and "widths" in file["model"]:
        tree["model"]["widths"] = file["model"]["widths"]
    rates = floats(spectral_efficiency, "--spectral-efficiency") or ()
    shares: Any = split
    if split is not None and not split.startswith("optimal"):
        shares = floats(split, "--split")
    options = {
        "channel": channel,
        "noise_dbm": noise_dbm,
        "spectral_efficiency": rates[0] if len(rates) == 1 else rates or None,
        "split": shares,
        **values,
    }
    asked = config.asked(overrides, {f"radio__{key}": value for key, value in options.items()})
    config.change(tree, asked)
    counts = {len(value) for value in _per_segment(tree)} | ({segments} if segments else set())
    if len(counts) > 1:
        raise RequestError(
            "--segments, --split, --spectral-efficiency and model.widths tell different numbers "
            "of segments; make them agree"
        )
    count = counts.pop() if counts else 2
    if isinstance(tree["model"], dict):
        tree["model"].setdefault("widths", [(i + 1) / count for i in range(count)])
    described = config.build(tree)
    for key in asked:
        if not key.startswith("radio.") and key != "model.widths":
            raise RequestError(f"this command reads radio.* and model.widths; leave out {key}")
    return described.radio, described.model.widths


def _per_segment(tree: dict[str, Any]) -> list[list[Any]]:
    """The values of a description that have one entry per segment."""
    found = [
        tree[section].get(key)
        for section, key in (
            ("model", "widths"),
            ("radio", "split"),
            ("radio", "spectral_efficiency"),
        )
        if isinstance(tree[section], dict)
    ]
    return [list(value) for value in found if isinstance(value, list | tuple) and value]


def _draw(section: "RadioSection", widths: tuple[float, ...], devices: int, out: Path) -> list[str]:
    from slimfl.radio import segment_rates
    from slimfl.report.figures import (
        preference_figure,
        probability_figure,
        save,
        split_figure,
    )

    rates = segment_rates(section, len(widths))
    paths = []
    if len(widths) > 1:
        paths.append(save(split_figure(section, rates), out / "link-split.png"))
    paths.append(save(probability_figure(section, rates, widths), out / "link-probability.png"))
    paths.append(save(preference_figure(section, widths, devices), out / "link-preferable.png"))
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
        title=f"Noise {document['noise_dbm']:.4g} dBm, c/P = {document['noise_to_power']:.4g}",
    )
    for heading in (
        "signal",
        "seg-\nments",
        "time\nshare" if document["multiplexing"] == "orthogonal-airtime" else "power",
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
    if "optimal_split" in document:
        rows("SlimFL, best split\n(closed form)", document["optimal_split"], numbers)
    rows("SlimFL, best split\n(numeric)", document["optimal_split_numeric"], numbers)
    for i, (width, described) in enumerate(document["vanilla"].items(), 1):
        rows(f"Vanilla FL-{width}", described, ["1" if i == 1 else f"1-{i}"])
    show(
        table,
        Text.assemble(
            "Advice: ",
            (
                "a tie" if document["advice"]["tie"] else document["advice"]["method"] or "none",
                "bold",
            ),
            f". {document['advice']['reason']}.",
        ),
    )
    for warning in document["warnings"]:
        show(f"Note: {warning}.")
    if (most := document["superposition_gains_at_most"]) is not None:
        show(
            f"At this SNR superposition can gain at most {most['share']:.1%} over the better of "
            f"base and full, if the base is worth {most['worth_of_base']:.2f} of the full model."
        )
    if document["downlink"]["kind"] != "perfect":
        heard = document["downlink"]["decoding_probability"]
        show(f"A device hears the global model with probability {heard:.4f}.")
    aside().print(f"figures: {', '.join(document['figures'])}", highlight=False, soft_wrap=True)
