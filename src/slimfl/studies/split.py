"""How to split the power: one split for all, one per device, or one that the server learns.

The devices are those of `rivals`' population `cell`. At rest a device stays where it is; moving, it
walks about the cell, so that a good device becomes a poor one during the run. A split per device
knows every device's distance at all times; the learned one knows only what was decoded.
"""

from __future__ import annotations

from typing import Any

from slimfl.reproduction.cells.cell import Cell
from slimfl.reproduction.exhibits.exhibit import Table
from slimfl.reproduction.judging.paired import difference
from slimfl.results import RunRecord
from slimfl.studies import standing
from slimfl.studies.drawings import Line, line_figure
from slimfl.studies.rivals import DEVICES, Entry, runs_of
from slimfl.studies.rivals import PER_DEVICE as WEIGHTED
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

#: 2 m/s with 10 s between rounds: 20 m per round, across the cell and back in a run.
MOVING = {"radio__speed_m_s": 2.0, "radio__round_s": 10.0}
SCENES: dict[str, dict[str, Any]] = {"at rest": {}, "moving": MOVING}
SPLITS: dict[str, dict[str, Any]] = {
    "0.8 and 0.2 for all": {},
    "best for all (the bound's D)": {"radio__split": "optimal"},
    "per device, by the bound": {"radio__split": "per-device"},
    "per device, equal weights": WEIGHTED,
    "learned, equal weights": {**WEIGHTED, "radio__split": "learned"},
}
WIDTHS = ("0.5x", "1.0x")


def split_runs(scale: StudyScale, scene: str, split: str) -> list[Cell]:
    """One split in one scene, under every seed."""
    entry = Entry(split, "slimfl", {**SPLITS[split], **SCENES[scene]})
    return runs_of(scale, "cell", entry, seeds=scale.seeds, rounds=scale.rounds)


def cells(scale: StudyScale) -> list[Cell]:
    """Every split in both scenes."""
    return [c for scene in SCENES for split in SPLITS for c in split_runs(scale, scene, split)]


def answer(scale: StudyScale, runs: Runs) -> Answer:
    """A table per scene, and how the learned split comes to deliver as much as the informed one."""
    tables, sentences, pictures = [], [], []
    data: dict[str, Any] = {}
    for scene in SCENES:
        rows, data[scene], lines = [], {}, []
        by_split = {split: finished(split_runs(scale, scene, split), runs) for split in SPLITS}
        reference = by_split["0.8 and 0.2 for all"]
        for split, records in by_split.items():
            if not records:
                continue
            row = [split, str(len(records))]
            for width in WIDTHS:
                mine = standing.final_standing(split, records, width)
                base = standing.final_standing("fixed", reference, width)
                gap = difference(split, "fixed", mine.by_seed, base.by_seed)
                row += [str(mine), "" if records is reference else standing.gap_words(gap)]
                data[scene].setdefault(split, {})[width] = dict(mine.by_seed)
            shares = [arrived_share(records, segment) for segment in range(len(WIDTHS))]
            rows.append([*row, *(f"{100 * share:.0f}" for share in shares)])
            lines.append(_over_time(split, records))
        headings = ["split", "seeds", "0.5x, %", "over 0.8 and 0.2", "1.0x, %", "over 0.8 and 0.2",
                    "segment 1 arrived, %", "segment 2 arrived, %"]  # fmt: skip
        name = scene.replace(" ", "-")
        tables.append(Titled(name, f"Devices {scene}.", Table(headings, rows)))
        if lines:
            sentences.append(_sentence(scene, by_split))
            pictures.append(
                Picture(
                    name,
                    f"Segments delivered per device and round, devices {scene}; means over ten "
                    "rounds.",
                    line_figure(
                        lines, "round", "segments per device and round", f"devices {scene}"
                    ),
                )
            )
    return Answer([s for s in sentences if s], tables, pictures, data)


def _over_time(split: str, records: list[RunRecord], window: int = 10) -> Line:
    """Segments per device and round, in windows of rounds; the deviation is over seeds."""
    rounds = len(records[0].lines)
    ends = list(range(min(window, rounds), rounds + 1, window))
    means, deviations = [], []
    for end in ends:
        values = [
            sum(sum(line.delivered) for line in record.lines[max(0, end - window) : end])
            / (DEVICES * min(window, end))
            for record in records
        ]
        one = standing.Standing(split, dict(enumerate(values)))
        means.append(one.mean)
        deviations.append(one.deviation)
    return Line(split, ends, means, deviations, dashed=split.startswith("learned"))


def _sentence(scene: str, by_split: dict[str, list[RunRecord]]) -> str:
    informed, learned = by_split["per device, equal weights"], by_split["learned, equal weights"]
    fixed = by_split["0.8 and 0.2 for all"]
    if not (informed and learned and fixed):
        return ""
    first, told, blind = (100 * arrived_share(some, 0) for some in (learned, informed, fixed))
    return (
        f"Devices {scene}: with a learned split segment 1 arrives from {first:.0f}% of the "
        f"uploads; with a split that knows every distance from {told:.0f}%, with 0.8 and 0.2 for "
        f"all from {blind:.0f}%."
    )


STUDY = Study(
    "split",
    "How to split the power",
    "What is gained by a split per device, and can the server learn it from what arrives?",
    cells,
    answer,
)
