"""How many widths one model can have: S = 2 to 8 segments in one superposed signal.

All widths are equal steps, and the whole model takes 3 bit/s/Hz in every case, as the paper's two
segments of 1.5 do, so that airtime stays about the same. The setting is that of `regimes` with the
poor channel, all devices in one place.
"""

from __future__ import annotations

from typing import Any

from slimfl.reproduction.cells.cell import Cell
from slimfl.reproduction.exhibits.exhibit import Table
from slimfl.reproduction.judging.paired import difference
from slimfl.studies import standing
from slimfl.studies.drawings import Line, line_figure
from slimfl.studies.regimes import METHODS, PAPER_RATE, Regime
from slimfl.studies.scale import StudyScale
from slimfl.studies.study import (
    Answer,
    Picture,
    Runs,
    Study,
    Titled,
    arrived_share,
    finished,
)

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


def answer(scale: StudyScale, runs: Runs) -> Answer:
    """Accuracy of every width, and how often every segment arrives."""
    rows, lines = [], []
    data: dict[str, Any] = {}
    for count in COUNTS:
        records = finished(runs_of(scale, count), runs)
        if not records:
            continue
        names = records[0].width_names
        by_width = [standing.final_standing(w, records, w) for w in names]
        arrived = [100 * arrived_share(records, segment) for segment in range(count)]
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
        }
        rows += [
            [str(count), name, str(len(records)), str(each), f"{share:.0f}"]
            for name, each, share in zip(names, by_width, arrived, strict=True)
        ]
    headings = ["S", "width", "seeds", "accuracy, %", "its segment arrived, %"]
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
