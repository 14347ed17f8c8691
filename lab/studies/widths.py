"""How many widths one model can have: S = 2 to 8 segments in one superposed signal.

All widths are equal steps, and the whole model takes 3 bit/s/Hz in every case, as the paper's two
segments of 1.5 do. Four things change with S at once: airtime (the longest segment decides it),
transmit energy, computing, and the weight of the full width in the loss, 1/S. The setting is that
of `regimes` with the poor channel, all devices in one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from lab.reproduction.cells.cell import Cell
from lab.reproduction.exhibits.exhibit import Table
from lab.reproduction.judging.paired import difference
from lab.studies import standing
from lab.studies.drawings import Line, line_figure
from lab.studies.regimes import METHODS, PAPER_RATE, Regime
from lab.studies.scale import StudyScale
from lab.studies.study import (
    Answer,
    Picture,
    Runs,
    Study,
    Titled,
    arrived_share,
    finished,
)
from slimfl.results import RunRecord

SETTING = Regime("poor", "same", 1.0)
COUNTS = (2, 3, 4, 6, 8)


def widths(count: int) -> list[float]:
    """Equal steps up to the full width."""
    return [round((i + 1) / count, 3) for i in range(count - 1)] + [1.0]


def runs_of(scale: StudyScale, count: int) -> list[Cell]:
    """SlimFL with this number of widths, under every seed."""
    several = {
        "model__widths": widths(count),
        "radio__spectral_efficiency": 2 * PAPER_RATE / count,
    }
    changes = {**METHODS["slimfl"], **SETTING.changes, **(several if count > 2 else {})}
    return scale.each_seed("slimfl", **changes)


def cells(scale: StudyScale) -> list[Cell]:
    """Every number of widths."""
    return [c for count in COUNTS for c in runs_of(scale, count)]


@dataclass(frozen=True)
class Cost:
    """What a run takes, in the mean over seeds."""

    airtime_ms: float
    """Of one upload."""
    sending_j: float
    computing_j: float

    @classmethod
    def of(cls, records: Sequence[RunRecord]) -> Cost:
        """Of all rounds and devices."""
        sending = standing.sending_j(records)
        both = fmean(map(standing.energy_j, records))
        return cls(standing.airtime_ms(records), sending, both - sending)

    @property
    def cells(self) -> list[str]:
        """As in the table."""
        return [f"{self.airtime_ms:.3f}", f"{self.sending_j:.3f}", f"{self.computing_j:.1f}"]


def answer(scale: StudyScale, runs: Runs) -> Answer:
    """Accuracy of every width, and how often every segment arrives."""
    rows, lines, costs = [], [], []
    data: dict[str, Any] = {}
    for count in COUNTS:
        records = finished(runs_of(scale, count), runs)
        if not records:
            continue
        names = records[0].width_names
        by_width = [standing.final_standing(w, records, w) for w in names]
        arrived = [100 * arrived_share(records, segment) for segment in range(count)]
        cost = Cost.of(records)
        costs.append(cost)
        lines.append(
            Line(
                f"S = {count}",
                widths(count),
                [each.mean for each in by_width],
                [each.deviation for each in by_width],
            )
        )
        data[str(count)] = {
            "accuracy": {w: dict(e.by_seed) for w, e in zip(names, by_width, strict=True)},
            "arrived_percent": arrived,
            **asdict(cost),
        }
        rows += [
            [str(count), name, str(len(records)), str(each), f"{share:.0f}", *cost.cells]
            for name, each, share in zip(names, by_width, arrived, strict=True)
        ]
    headings = ["S", "width", "seeds", "accuracy, %", "its segment arrived, %",
                "airtime per upload, ms", "sending, J", "computing, J"]  # fmt: skip
    sentences = []
    if len(lines) > 1:
        first, last = lines[0], lines[-1]
        fulls = [standing.Standing(count, each["accuracy"]["1.0x"]) for count, each in data.items()]
        lost = difference(last.name, first.name, fulls[-1].by_seed, fulls[0].by_seed, "points")
        sentences.append(
            f"The full width has {fulls[0]} % with {first.name} and {fulls[-1]} % with "
            f"{last.name}: {standing.gap_words(lost)} points. The narrowest of {last.name} "
            f"({last.x[0]:g}x) has {last.mean[0]:.1f} %."
        )
        counts = list(data)
        sentences.append(
            f"Not the number of widths alone changes: from {first.name} to {last.name} the airtime "
            f"of an upload goes from {costs[0].airtime_ms:.3g} to {costs[-1].airtime_ms:.3g} ms, "
            f"sending from {costs[0].sending_j:.3g} to {costs[-1].sending_j:.3g} J, computing from "
            f"{costs[0].computing_j:.3g} to {costs[-1].computing_j:.3g} J, and the weight of the "
            f"full width in the loss from 1/{counts[0]} to 1/{counts[-1]}."
        )
    pictures = []
    if lines:
        drawn = line_figure(lines, "width", "accuracy, %", "alpha 1, poor channel")
        pictures.append(Picture("widths", "Accuracy of every width, by their number S.", drawn))
    table = Titled("widths", "SlimFL with S widths.", Table(headings, rows))
    return Answer(sentences, [table], pictures, data)


STUDY = Study(
    "widths",
    "How many widths",
    "What do more widths cost the full one, and how good are the narrow ones?",
    cells,
    answer,
)
