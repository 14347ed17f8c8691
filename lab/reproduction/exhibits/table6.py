"""Table VI: bits decoded and dropped over 10 devices and 1,000 rounds."""

from __future__ import annotations

import math

from lab.reproduction import paper
from lab.reproduction.cells.scale import Scale
from lab.reproduction.exhibits import table3_runs as grid
from lab.reproduction.exhibits.exhibit import Exhibit, Recipe, Runs, Table
from lab.reproduction.judging.verdict import Claim, Comparison, Measure, Subject
from slimfl.experiment import RadioSection
from slimfl.methods import full_assignment, method
from slimfl.radio import decoding_frequencies, outage_link, segment_bits, signal

WIDTHS = (0.5, 1.0)
MBYTE = 2**20


def frequencies(channel: str, name: str, draws: int) -> list[float]:
    """How often a method's segments 1 and 2 arrive, simulated on the link without training."""
    section = RadioSection(channel=channel)
    sent = signal(section, full_assignment(method(name, WIDTHS), 2).messages, len(WIDTHS))
    arrived: list[float] = decoding_frequencies(outage_link(section), sent.coding, draws).tolist()
    return arrived


def decoded(channel: str, draws: int) -> dict[str, tuple[float, float]]:
    """Every column of the table: MBytes and their binomial standard deviation."""
    half = float(segment_bits(RadioSection(accounting="paper"), [0, 0])[0]) / 8 / MBYTE * draws
    (first, both), (narrow,), (wide,) = (frequencies(channel, m, draws) for m in grid.METHODS)

    def share(megabytes: float, frequency: float) -> tuple[float, float]:
        return megabytes * frequency, megabytes * math.sqrt(frequency * (1 - frequency) / draws)

    # dropped bits of SlimFL: nothing arrived, or the right half did not
    dropped = half * ((1 - first) + (1 - both))
    variance = first * (1 - first) + both * (1 - both) + 2 * both * (1 - first)
    return {
        "slimfl 0.5x": share(half, first - both),
        "slimfl 1.0x": share(2 * half, both),
        "slimfl drop": (dropped, half * math.sqrt(variance / draws)),
        "vanilla-0.5x": share(half, narrow),
        "vanilla-0.5x drop": share(half, 1 - narrow),
        "vanilla-1.0x": share(2 * half, wide),
        "vanilla-1.0x drop": share(2 * half, 1 - wide),
    }


def show(scale: Scale, runs: Runs) -> Exhibit:
    """Draw the channel as often as the paper did, and count."""
    ours = {channel: decoded(channel, scale.draws) for channel in grid.CHANNELS}
    columns = list(paper.TABLE6["good"])
    rows = []
    for channel in grid.CHANNELS:
        printed = paper.TABLE6[channel]
        rows.append([channel, "paper", *(f"{printed[key]:.2f}" for key in columns)])
        rows.append([channel, "ours", *(f"{m:.2f} ± {d:.2f}" for m, d in ours[channel].values())])
    claims = [
        Claim(
            f"Decoded and dropped MBytes on the {channel} channel",
            "table VI",
            tuple(
                # the paper drew equally often, so its numbers have the same sampling error
                Comparison(key, mean, deviation, 1, paper.TABLE6[channel][key], deviation, 2, "MB")
                for key, (mean, deviation) in ours[channel].items()
            ),
            about=Subject(Measure.BITS, channel),
        )
        for channel in grid.CHANNELS
    ]
    poor = ours["poor"]
    saved = poor["vanilla-1.0x drop"][0] - poor["slimfl drop"][0]
    blur = math.hypot(poor["vanilla-1.0x drop"][1], poor["slimfl drop"][1])
    claims.append(
        Claim(
            "SlimFL drops 3.52 MBytes less than Vanilla FL-1.0x on the poor channel",
            "section VI-D, erratum E7",
            (Comparison("dropped less", saved, blur, 1, 3.52, blur, 2, "MB"),),
        )
    )
    return Exhibit(
        name="table6",
        title="Table VI: decoded and dropped bits",
        paper="SlimFL delivers the half model where Vanilla FL-1.0x delivers nothing, and drops "
        "fewer bits on the poor channel.",
        table=Table(["channel", "", *columns], rows),
        claims=claims,
        notes=[
            f"MBytes of 2^20 bytes, the paper's bits per model, {scale.draws:,} uploads; ± is the "
            "binomial standard deviation, which holds for the paper's numbers as well.",
            "The paper's rows -30 dB and -40 dB are read as the good and the poor channel (E6); "
            "this table fixes their noise power.",
        ],
    )


TABLE6 = Recipe("table6", lambda scale: [], show)
