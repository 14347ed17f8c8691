"""`slimfl link` and `slimfl bound`: what a channel lets through, and what theorem 1 says of it."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.text import Text

from slimfl import experiment as config
from slimfl import radio
from slimfl.cli.output import Reply, finite, floats, table
from slimfl.cli.settings import Set, Source, command
from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.experiment.loading import tree_of
from slimfl.radio import Coding
from slimfl.radio import bound as theory
from slimfl.radio.gain import largest_gain
from slimfl.report.figures.drawing import save
from slimfl.report.figures.link import (
    bound_figure,
    preference_figure,
    probability_figure,
    split_figure,
)

SegmentCount = Annotated[
    int | None,
    typer.Option(
        help="Number of segments.", min=1, max=32, show_default="as many as --split has, or 2"
    ),
]
Devices = Annotated[int, typer.Option(help="Number of devices.", min=1, max=1_000_000)]
Out = Annotated[Path, typer.Option(help="Folder for the figures.")]

#: Defaults that no single value says.
SAID = {"noise_dbm": "the channel's", "split": "0.8,0.2 for two segments, else optimal"}


def radio_section(
    source: Path | None, texts: Iterable[str], segments: int | None
) -> tuple[RadioSection, tuple[float, ...]]:
    """The radio section that a file and `--set` describe, and the widths.

    Args:
        source: A TOML file, of which only the sections `radio` and `model` count.
        texts: What was given as KEY=VALUE.
        segments: How many there are, if that was said; the widths are then equally far apart.
    """
    file, given = tree_of(source), config.asked(texts, {})
    tree = {name: file[name] for name in ("radio", "model") if isinstance(file.get(name), dict)}
    for key in given:
        if not key.startswith("radio.") and key != "model.widths":
            raise RequestError(f"this command reads radio.* and model.widths; leave out {key}")
    if "model.widths" not in given and "widths" not in tree.get("model", {}):
        radio_ = tree.get("radio", {})
        lists = (given.get(f"radio.{k}", radio_.get(k)) for k in ("split", "spectral_efficiency"))
        count = segments or max((len(one) for one in lists if isinstance(one, list)), default=2)
        given["model.widths"] = tuple((i + 1) / count for i in range(count))
    [experiment] = config.load(tree, given)
    widths = experiment.model.widths
    if segments not in (None, len(widths)):
        raise RequestError(f"--segments is {segments} and there are {len(widths)} widths; omit one")
    return experiment.radio, widths


@command(
    *(f"radio.{key}" for key in (
        "channel", "noise_dbm", "spectral_efficiency", "split", "power_dbm", "distance_m",
        "path_loss_exponent", "implementation_loss_db",
    )),
    **SAID,
)  # fmt: skip
def link(
    experiment: Source = None,
    segments: SegmentCount = None,
    devices: Devices = 10,
    draws: Annotated[
        int, typer.Option(help="Simulated draws beside the formula.", min=1, max=10_000_000)
    ] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the draws.", min=0, max=2**63 - 1)] = 0,
    waveform: Annotated[
        bool,
        typer.Option("--waveform", help="Compare real symbols, table and formula; minutes."),
    ] = False,
    out: Out = Path("figures"),
    explore: Annotated[
        bool, typer.Option("--explore", help="Write one page with sliders instead: link.html.")
    ] = False,
    set_: Set = None,
) -> Reply:
    """Say what a channel lets through, and which method suits it.

    Prints thresholds, decoding probabilities and the best power split. Only the radio section and
    the widths of an experiment count.
    """
    section, widths = radio_section(experiment, set_ or (), segments)
    _refuse_what_is_no_single_link(section)
    count = len(widths)
    if waveform:
        from slimfl.cli.waveform_link import compared  # in an extra

        return compared(section, count, draws, seed)
    if explore:
        from slimfl.report.pages.link_page import (
            write_link_page,  # with tables that take a second to import
        )

        page = str(write_link_page(section, count, devices, out / "link.html"))
        return Reply({"page": page}, [f"Open {page} in a browser."])
    section = _with_sizes(section, widths)
    rates, links = radio.segment_rates(section, count), radio.possible_links(section)
    ratio = _mean_ratio(links)

    def described(coding: Coding, segments_per_message: int = 1) -> dict[str, Any]:
        probabilities = radio.section_probabilities(section, coding)
        by_messages = radio.inverse_probability_sum(probabilities)
        drawn = [w * radio.decoding_frequencies(one, coding, draws, seed) for w, one in links]
        return {
            "split": list(coding.split),
            "spectral_efficiency": coding.rates.tolist(),
            "thresholds": coding.thresholds(ratio).tolist(),
            "decoding_probabilities": probabilities.tolist(),
            "simulated": np.sum(drawn, axis=0).tolist(),
            "D_messages": finite(by_messages),
            "D_segments": finite(segments_per_message * by_messages),
        }

    sent = radio.signal(section, tuple((i,) for i in range(count)), count)
    best = {}
    if section.multiplexing == "superposition" and not section.residual_interference:
        split = radio.optimal_split(rates)
        best["optimal_split"] = described(radio.build_coding(section, rates, split))
    split = radio.power_split(section.model_copy(update={"split": "optimal-numeric"}), rates)
    best["optimal_split_numeric"] = described(radio.build_coding(section, rates, split))
    whole = [radio.signal(section, (tuple(range(i + 1)),), count).coding for i in range(count)]
    advice = theory.advise(section, widths, devices)
    document: dict[str, Any] = {
        "channel": section.channel,
        "noise_dbm": section.noise,
        "noise_to_power": ratio,
        "multiplexing": section.multiplexing,
        # in line of sight or not, with 3GPP's path losses
        "cases": [{"probability": w, "noise_to_power": one.noise_to_power} for w, one in links],
        "downlink": _downlink(section),
        "slimfl": described(sent.coding),
        "warnings": radio.oddities([sent]),
        "superposition_gains_at_most": _largest_gain(section, rates, ratio),
        "vanilla": {
            f"{round(width, 3)}x": described(coding, segments_per_message=i)
            for i, (width, coding) in enumerate(zip(widths, whole, strict=True), 1)
        },
        **best,
        "advice": {
            "method": advice.method,
            "tie": advice.is_tie,
            "reason": advice.reason,
            "D_segments": {name: finite(term) for name, term in advice.terms.items()},
        },
        "draws": draws,
        "figures": _draw(section, widths, devices, out),
    }
    return Reply(document, _words(document), [f"figures: {', '.join(document['figures'])}"])


def _refuse_what_is_no_single_link(section: RadioSection) -> None:
    for key, fits, instead in (
        ("model", section.model == "outage", "outage"),
        # a table was measured with one of the signals that are compared
        ("decoder", section.decoder != "table", "outage or normal"),
        ("users_per_slot", section.users_per_slot == 1, "1"),
        ("split", section.split != "per-device", "optimal-numeric, the best for one device"),
    ):
        if not fits:
            raise RequestError(
                f"slimfl link describes one device, and radio.{key} is {getattr(section, key)!r}; "
                f"set it to {instead}"
            )
    # under the paper's accounting all segments are equal, as is assumed here
    paper = section.accounting == "paper"
    rates = section.spectral_efficiency
    if paper and (not isinstance(rates, tuple) or len({*rates}) == 1):
        return
    for key, value, what in (
        ("multiplexing", "orthogonal-airtime", "decoding probabilities depend"),
        ("split_objective", "delivered", "best split depends"),
    ):
        if getattr(section, key) == value and not (paper and key == "split_objective"):
            raise RequestError(
                f'with radio.{key} = "{value}" the {what} on the sizes of the segments, which a '
                "link does not have; `slimfl population show` gives the probabilities of an "
                'experiment; for equal segments, set radio.accounting to "paper" and one '
                "radio.spectral_efficiency"
            )


def _with_sizes(section: RadioSection, widths: tuple[float, ...]) -> RadioSection:
    """The section with the rates that the sizes of UL-MobileNet's segments give."""
    bits = radio.segment_bits(section, radio.paper_network_sizes(widths)).tolist()
    rates = radio.segment_rates(section, len(widths), bits)
    if len({*rates}) == 1:
        return section
    return section.model_copy(update={"rates": "equal", "spectral_efficiency": rates})


def _mean_ratio(links: Sequence[tuple[float, radio.OutageLink]]) -> float:
    """c / P; a mean in decibels over the cases."""
    if len(links) == 1:
        return links[0][1].noise_to_power
    return math.exp(sum(weight * math.log(one.noise_to_power) for weight, one in links))


def _largest_gain(
    section: RadioSection, rates: tuple[float, ...], ratio: float
) -> dict[str, float] | None:
    """What two superposed segments can deliver over the better of one message and the base alone.

    None where the formula does not hold: other fading, other decoders, more segments.
    """
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


def _downlink(section: RadioSection) -> dict[str, Any]:
    """How often a device hears the global model."""
    if section.downlink == "perfect":
        return {"kind": "perfect", "decoding_probability": 1.0}
    server = {"power_dbm": section.downlink_power_dbm, "decoder": "outage", "max_attempts": 1}
    whole = radio.single(section.downlink_spectral_efficiency)
    there = section.model_copy(update=server)
    [heard] = radio.section_probabilities(there, whole).tolist()
    return {"kind": section.downlink, "decoding_probability": heard}


def _draw(section: RadioSection, widths: tuple[float, ...], devices: int, out: Path) -> list[str]:
    rates = radio.segment_rates(section, len(widths))
    drawn = {"split": split_figure(section, rates)} if len(widths) > 1 else {}
    drawn["probability"] = probability_figure(section, rates, widths)
    drawn["preferable"] = preference_figure(section, widths, devices)
    return [str(save(figure, out / f"link-{name}.png")) for name, figure in drawn.items()]


def _words(document: dict[str, Any]) -> list[Any]:
    """A link for people: a table of signals, the advice, and notes."""
    numbers = [str(i + 1) for i in range(len(document["slimfl"]["split"]))]
    signals = [
        (name, document[key], numbers)
        for name, key in (
            ("SlimFL", "slimfl"),
            ("SlimFL, best split\n(closed form)", "optimal_split"),
            ("SlimFL, best split\n(numeric)", "optimal_split_numeric"),
        )
        if key in document
    ]
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
    advice = document["advice"]
    best = ("a tie" if advice["tie"] else advice["method"] or "none", "bold")
    noise = f"Noise {document['noise_dbm']:.4g} dBm, c/P = {document['noise_to_power']:.4g}"
    shown: list[Any] = [
        table(rows, noise),
        Text.assemble("Advice: ", best, f". {advice['reason']}."),
    ]
    shown += [f"Note: {warning}." for warning in document["warnings"]]
    if (most := document["superposition_gains_at_most"]) is not None:
        shown.append(
            f"At this SNR superposition can gain at most {most['share']:.1%} over the better of "
            f"base and full, if the base is worth {most['worth_of_base']:.2f} of the full model."
        )
    if document["downlink"]["kind"] != "perfect":
        heard = document["downlink"]["decoding_probability"]
        shown.append(f"A device hears the global model with probability {heard:.4f}.")
    return shown


@command(
    "radio.channel", "radio.noise_dbm", "radio.spectral_efficiency", "radio.split", **SAID
)  # fmt: skip
def bound(
    segments: SegmentCount = None,
    devices: Devices = 10,
    weights: Annotated[
        str | None, typer.Option(help="Loss weights.", show_default="1/S each")
    ] = None,
    smoothness: Annotated[
        float, typer.Option(help="L, the smoothness.", min=1e-12, max=1e12)
    ] = 1.0,
    strong_convexity: Annotated[
        float, typer.Option(help="mu, the strong convexity.", min=1e-12, max=1e12)
    ] = 0.1,
    delta: Annotated[
        float, typer.Option(help="Mean variance of a local gradient.", min=0, max=1e12)
    ] = 1.0,
    initial_distance_squared: Annotated[
        float, typer.Option(help="Delta_1, the squared distance at the start.", min=0, max=1e12)
    ] = 1.0,
    rounds: Annotated[int, typer.Option(help="Number of rounds.", min=1, max=10_000_000)] = 1000,
    out: Out = Path("figures"),
    set_: Set = None,
) -> Reply:
    """Compute theorem 1's bound on the optimality gap.

    Shows the paper's bound and a sharper one.
    """
    section, widths = radio_section(None, set_ or (), segments)
    count = len(widths)
    shares = floats(weights, "--weights") or theory.optimal_weights(count)
    if len(shares) != count or abs(sum(shares) - 1) > 1e-6 or min(shares) < 1e-12:
        raise RequestError(f"--weights takes {count} positive numbers that sum to 1")
    problem = {
        "smoothness": smoothness,
        "strong_convexity": strong_convexity,
        "initial_distance_squared": initial_distance_squared,
    }
    for name, value in {**problem, "delta": delta}.items():
        if value != value:  # a NaN is neither too small nor too large
            raise RequestError(f"--{name.replace('_', '-')} takes a number, not {value}")
    if strong_convexity > smoothness:
        raise RequestError("--strong-convexity must not exceed --smoothness")

    coding = radio.signal(section, tuple((i,) for i in range(count)), count).coding
    probabilities = radio.outage_link(section).decoding_probabilities(coding)
    constants = {
        "paper": theory.paper_constant(delta, probabilities, shares),
        "sharp": theory.sharp_constant(delta, probabilities, shares, devices),
    }
    listed = sorted({1, *(10**k for k in range(1, 7) if 10**k < rounds), rounds})
    # enough rounds for a smooth curve, including those of the table
    t = sorted({*np.geomspace(1, rounds, 200).round().astype(int).tolist(), *listed})
    curves = {
        name: theory.theorem1_bound(t, constant=b, **problem) for name, b in constants.items()
    }
    figure = str(save(bound_figure(t, curves), out / "bound.png"))
    rates = theory.learning_rate(listed, smoothness, strong_convexity)
    bounds = [
        {
            "round": round_,
            "learning_rate": float(rate),
            **{f"bound_{name}": finite(float(c[t.index(round_)])) for name, c in curves.items()},
        }
        for round_, rate in zip(listed, rates, strict=True)
    ]
    headings = ("t", "learning\nrate", "paper's\nbound", "sharper\nbound")
    values = [[math.inf if value is None else value for value in row.values()] for row in bounds]
    rows = [dict(zip(headings, each, strict=True)) for each in values]
    paper, sharp = ("infinite" if b == math.inf else f"{b:.4g}" for b in constants.values())
    reach = ", ".join(f"{p:.4f}" for p in probabilities)
    document = {
        "decoding_probabilities": probabilities.tolist(),
        **problem,
        "delta": delta,
        "B": {name: finite(value) for name, value in constants.items()},
        "bound": bounds,
        "figure": figure,
    }
    shown: list[Any] = [
        table(rows, "Theorem 1: E[F] - F* after t rounds is at most"),
        f"B = {paper} (paper, lemma 1), {sharp} (sharper, K = {devices}); p = {reach}",
    ]
    return Reply(document, shown, [f"figure: {figure}"])
