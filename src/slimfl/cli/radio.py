"""`slimfl link`: what a channel lets through, and which method suits it."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slimfl.cli.output import Json, finite, remark, show, show_json, table
from slimfl.cli.settings import Set, Source, with_settings

if TYPE_CHECKING:
    from slimfl.experiment import RadioSection
    from slimfl.radio import Coding

SegmentCount = Annotated[
    int | None,
    typer.Option(
        help="Number of segments.", min=1, max=32, show_default="as many as --split has, or 2"
    ),
]
Devices = Annotated[int, typer.Option(help="Number of devices.", min=1, max=1_000_000)]
Seed = Annotated[int, typer.Option(help="Seed of the draws.", min=0, max=2**63 - 1)]
Out = Annotated[Path, typer.Option(help="Folder for the figures.")]

LinkCommand = with_settings(
    *(f"radio.{key}" for key in (
        "channel", "noise_dbm", "spectral_efficiency", "split", "power_dbm", "distance_m",
        "path_loss_exponent", "implementation_loss_db",
    )),
    noise_dbm="the channel's", split="0.8,0.2 for two segments, else optimal",
)  # fmt: skip


def link(
    experiment: Source = None,
    segments: SegmentCount = None,
    devices: Devices = 10,
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
    set_: Set = None,
    json: Json = False,
) -> None:
    """Say what a channel lets through, and which method suits it.

    Prints thresholds, decoding probabilities and the best power split. Only the radio section and
    the widths of an experiment count.
    """
    from slimfl.radio import build_coding as coded
    from slimfl.radio import oddities, optimal_split, power_split, segment_rates, signal

    section, widths = radio_section(experiment, set_ or (), segments)
    _refuse_what_is_no_single_link(section)
    count = len(widths)
    if waveform:
        from slimfl.cli.waveform_link import compare_waveform

        compare_waveform(section, count, draws, seed, json)
        return
    if explore:
        from slimfl.report.pages.link_page import write_link_page

        page = str(write_link_page(section, count, devices, out / "link.html"))
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

    needs = (
        ("model", section.model == "outage", "outage"),
        # a table was measured with one of the signals that are compared
        ("decoder", section.decoder != "table", "outage or normal"),
        ("users_per_slot", section.users_per_slot == 1, "1"),
        ("split", section.split != "per-device", "optimal-numeric, the best for one device"),
    )
    _refuse_what_depends_on_sizes(section)
    for key, fits, instead in needs:
        if not fits:
            raise RequestError(
                f"slimfl link describes one device, and radio.{key} is {getattr(section, key)!r}; "
                f"set it to {instead}"
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
    source: Path | None, texts: Iterable[str], segments: int | None
) -> tuple["RadioSection", tuple[float, ...]]:
    """The radio section that a file and `--set` describe, and the widths."""
    from slimfl import experiment as config
    from slimfl.errors import RequestError
    from slimfl.experiment.loading import tree_of

    file, given = tree_of(source), config.asked(texts, {})
    tree = {name: file[name] for name in ("radio", "model") if isinstance(file.get(name), dict)}
    for key in given:
        if not key.startswith("radio.") and key != "model.widths":
            raise RequestError(f"this command reads radio.* and model.widths; leave out {key}")
    if "model.widths" not in given and "widths" not in tree.get("model", {}):
        radio = tree.get("radio", {})
        values = (
            given.get(f"radio.{key}", radio.get(key)) for key in ("split", "spectral_efficiency")
        )
        count = segments or max((len(one) for one in values if isinstance(one, list)), default=2)
        given["model.widths"] = tuple((i + 1) / count for i in range(count))
    [experiment] = config.load(tree, given)
    widths = experiment.model.widths
    if segments not in (None, len(widths)):
        raise RequestError(f"--segments is {segments} and there are {len(widths)} widths; omit one")
    return experiment.radio, widths


def _draw(section: "RadioSection", widths: tuple[float, ...], devices: int, out: Path) -> list[str]:
    from slimfl.radio import segment_rates
    from slimfl.report.figures.drawing import save
    from slimfl.report.figures.link import preference_figure, probability_figure, split_figure

    rates = segment_rates(section, len(widths))
    paths = []
    if len(widths) > 1:
        paths.append(save(split_figure(section, rates), out / "link-split.png"))
    paths.append(save(probability_figure(section, rates, widths), out / "link-probability.png"))
    paths.append(save(preference_figure(section, widths, devices), out / "link-preferable.png"))
    return [str(path) for path in paths]


def _show_link(document: dict[str, Any]) -> None:
    from rich.text import Text

    numbers = [str(i + 1) for i in range(len(document["slimfl"]["split"]))]
    signals = [("SlimFL", document["slimfl"], numbers)]
    if "optimal_split" in document:
        signals.append(("SlimFL, best split\n(closed form)", document["optimal_split"], numbers))
    numeric = document["optimal_split_numeric"]
    signals.append(("SlimFL, best split\n(numeric)", numeric, numbers))
    for i, (width, told) in enumerate(document["vanilla"].items(), 1):
        signals.append((f"Vanilla FL-{width}", told, ["1" if i == 1 else f"1-{i}"]))
    airtime = document["multiplexing"] == "orthogonal-airtime"
    rows = [
        {
            "signal": name if i == 0 else "",
            "seg-\nments": segment,
            "time\nshare" if airtime else "power": f"{told['split'][i]:.3f}",
            "bit/s/Hz": told["spectral_efficiency"][i],
            "gain\nneeded": told["thresholds"][i],
            "p": f"{told['decoding_probabilities'][i]:.4f}",
            "simu-\nlated": f"{told['simulated'][i]:.4f}",
            "D": "" if i else "infinite" if (d := told["D_segments"]) is None else f"{d:.4g}",
        }
        for name, told, segments in signals
        for i, segment in enumerate(segments)
    ]
    noise, ratio = document["noise_dbm"], document["noise_to_power"]
    advice = document["advice"]
    show(
        table(rows, f"Noise {noise:.4g} dBm, c/P = {ratio:.4g}"),
        Text.assemble(
            "Advice: ",
            ("a tie" if advice["tie"] else advice["method"] or "none", "bold"),
            f". {advice['reason']}.",
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
    remark(f"figures: {', '.join(document['figures'])}")
