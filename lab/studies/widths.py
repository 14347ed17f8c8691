"""How many widths one model can have: S = 2 to 8 segments in one superposed signal.

All widths are equal steps, and the whole model takes 3 bit/s/Hz in every case, as the paper's two
segments of 1.5 do. Four things change with S at once: airtime (the longest segment decides it),
transmit energy, computing, and the weight of the full width in the loss, 1/S. The setting is that
of `regimes` with the poor channel, all devices in one place.
"""

from __future__ import annotations

from typing import Any

from lab.cell import Cell
from lab.drawing import Line, line_figure
from lab.judge import interval_words
from lab.question import Answer, Picture, Question, Runs, Table, arrived_shares, complete, spent
from lab.scale import StudyScale
from lab.studies.compare import each_seed, final_of
from lab.studies.regimes import METHODS, PAPER_RATE, Regime
from slimfl.results.statistics import paired

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
    return each_seed(scale, "slimfl", **changes)


def cells(scale: StudyScale) -> list[Cell]:
    """Every number of widths."""
    return [c for count in COUNTS for c in runs_of(scale, count)]


def answer(scale: StudyScale, runs: Runs) -> Answer:
    """Accuracy of every width, and how often every segment arrives."""
    rows, lines, sentences = [], [], []
    data: dict[str, Any] = {}
    for count in COUNTS:
        records = complete(runs, runs_of(scale, count))
        if not records:
            continue
        by_width = {w: final_of(records, w) for w in records[0].width_names}
        arrived = [100 * share for share in arrived_shares(records)]
        took = spent(records)
        costs = {
            "airtime_ms": 1000 * took["airtime per upload"],
            "sending_j": took["transmit energy"],
            "computing_j": took["all energy"] - took["transmit energy"],
        }
        lines.append(Line(f"S = {count}", widths(count), [e.mean for e in by_width.values()],
                          [e.deviation for e in by_width.values()]))  # fmt: skip
        accuracy = {width: dict(each.by_seed) for width, each in by_width.items()}
        data[str(count)] = {"accuracy": accuracy, "arrived_percent": arrived, **costs}
        shown = [f"{costs['airtime_ms']:.3f}", f"{costs['sending_j']:.3f}",
                 f"{costs['computing_j']:.1f}"]  # fmt: skip
        rows += [
            [str(count), width, str(len(records)), each.brief, f"{share:.0f}", *shown]
            for (width, each), share in zip(by_width.items(), arrived, strict=True)
        ]
    if len(data) > 1:
        few, *_, many = data
        first, last = data[few], data[many]
        lost = paired(last["accuracy"]["1.0x"], first["accuracy"]["1.0x"])
        if lost is not None:
            sentences.append(f"The full width of S = {many} over that of S = {few}: "
                             f"{interval_words(lost)}.")  # fmt: skip
        changed = ", ".join(
            f"{name} from {first[key]:.3g} to {last[key]:.3g} {unit}"
            for name, key, unit in (
                ("the airtime of an upload", "airtime_ms", "ms"),
                ("sending", "sending_j", "J"),
                ("computing", "computing_j", "J"),
            )
        )
        sentences.append(
            f"Not the number of widths alone changes: {changed}, and the weight of the full width "
            f"in the loss from 1/{few} to 1/{many}."
        )
    headings = ["S", "width", "seeds", "accuracy, %", "its segment arrived, %",
                "airtime per upload, ms", "sending, J", "computing, J"]  # fmt: skip
    pictures = []
    if lines:
        drawn = line_figure(lines, "width", "accuracy, %", "alpha 1, poor channel")
        caption = "Accuracy of every width, by their number S."
        pictures.append(Picture("widths", caption, drawn))
    return Answer([Table("widths", "SlimFL with S widths.", headings, rows)], [], sentences,
                  pictures, data)  # fmt: skip


MANY_WIDTHS = Question(
    "widths",
    "How many widths",
    "What do more widths cost the full one, and how good are the narrow ones?",
    cells,
    answer,
)
