"""The link layer beside the paper's table VI."""

from __future__ import annotations

from misprints import TABLE_6, frequencies

from slimfl.experiment import RadioSection
from slimfl.radio import Messages, decoding_frequencies, outage_link, signal

#: Ten devices, 1000 rounds, as in the table.
DRAWS = 10_000

SIGNALS: dict[str, tuple[Messages, int]] = {
    "SlimFL, LH": (((0,), (1,)), 0),
    "SlimFL, LH and RH": (((0,), (1,)), 1),
    "Vanilla FL-0.5x": (((0,),), 0),
    "Vanilla FL-1.0x": (((0, 1),), 0),
}


def text() -> str:
    """The comparison as a table."""
    lines = [
        "| channel | what | table VI | equation (5) | 10,000 draws |",
        "|---|---|---|---|---|",
    ]
    for name in TABLE_6:
        section = RadioSection(channel=name)
        link = outage_link(section)
        for (what, (messages, index)), told in zip(SIGNALS.items(), frequencies(name), strict=True):
            coding = signal(section, messages, 2).coding
            formula = link.decoding_probabilities(coding)[index]
            drawn = decoding_frequencies(link, coding, DRAWS)[index]
            lines.append(f"| {name} | {what} | {told:.3f} | {formula:.3f} | {drawn:.3f} |")
    return "\n".join(lines)
