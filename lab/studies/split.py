"""How to split the power: one split for all, one per device, or one that the server learns.

The devices are those of `rivals`' population `cell`. At rest a device stays where it is; moving, it
walks about the cell, so that a good device becomes a poor one during the run. A split per device
knows every device's distance at all times; the learned one knows only what was decoded.
"""

from __future__ import annotations

from typing import Any

from lab.reproduction.cells.cell import Cell
from lab.reproduction.exhibits.exhibit import Table
from lab.reproduction.judging.paired import Difference, difference
from lab.studies import standing
from lab.studies.drawings import Line, line_figure
from lab.studies.rival_runs import DEVICES, Entry, runs_of
from lab.studies.rival_runs import PER_DEVICE as WEIGHTED
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
FIXED = "0.8 and 0.2 for all"
WIDTHS = ("0.5x", "1.0x")
#: Rounds over which deliveries are averaged in the picture.
WINDOW = 10


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
        rows, data[scene], lines, gaps = [], {}, [], []
        by_split = {split: finished(split_runs(scale, scene, split), runs) for split in SPLITS}
        reference = by_split[FIXED]
        for split, records in by_split.items():
            if not records:
                continue
            row = [split, str(len(records))]
            for width in WIDTHS:
                mine = standing.final_standing(split, records, width)
                base = standing.final_standing("fixed", reference, width)
                gap = difference(f"{split} at {width}", "fixed", mine.by_seed, base.by_seed)
                row += [str(mine), "" if records is reference else standing.gap_words(gap)]
                if gap is not None and records is not reference:
                    gaps.append(gap)
                data[scene].setdefault(split, {})[width] = dict(mine.by_seed)
            shares = [arrived_share(records, segment) for segment in range(len(WIDTHS))]
            rows.append([*row, *(f"{100 * share:.0f}" for share in shares)])
            if records is not reference:
                lines.append(_over_time(split, records, reference))
        headings = ["split", "seeds", "0.5x, %", "over 0.8 and 0.2", "1.0x, %", "over 0.8 and 0.2",
                    "segment 1 arrived, %", "segment 2 arrived, %"]  # fmt: skip
        name = scene.replace(" ", "-")
        tables.append(Titled(name, f"Devices {scene}.", Table(headings, rows)))
        if lines:
            sentences += [_delivered_words(scene, by_split), _accuracy_words(scene, gaps)]
            pictures.append(
                Picture(
                    name,
                    "Segments delivered per device and round, more than with 0.8 and 0.2 for all "
                    f"under the same seed; devices {scene}, means over ten rounds. Bars are "
                    "deviations over seeds.",
                    line_figure(
                        lines, "round", "more segments per device and round", f"devices {scene}"
                    ),
                )
            )
    return Answer([s for s in sentences if s], tables, pictures, data)


def _over_time(split: str, records: list[RunRecord], reference: list[RunRecord]) -> Line:
    """Segments per device and round over those of the reference, in windows of rounds."""
    mine, base = (
        {each.experiment.seed: _by_window(each) for each in some} for some in (records, reference)
    )
    seeds = sorted(mine.keys() & base.keys())
    more = [[a - b for a, b in zip(mine[s], base[s], strict=True)] for s in seeds]
    windows = [standing.Standing(split, dict(enumerate(each))) for each in zip(*more, strict=True)]
    rounds = len(records[0].lines)
    ends = [min(WINDOW * (number + 1), rounds) for number in range(len(windows))]
    return Line(
        split,
        ends,
        [each.mean for each in windows],
        [each.deviation for each in windows],
        dashed=split.startswith("learned"),
    )


def _by_window(record: RunRecord) -> list[float]:
    """Segments per device and round in every window of rounds, the last of which may be shorter."""
    counts = [sum(line.delivered) for line in record.lines]
    windows = [counts[begin : begin + WINDOW] for begin in range(0, len(counts), WINDOW)]
    return [sum(each) / (DEVICES * len(each)) for each in windows]


def _delivered_words(scene: str, by_split: dict[str, list[RunRecord]]) -> str:
    informed, learned = by_split["per device, equal weights"], by_split["learned, equal weights"]
    fixed = by_split[FIXED]
    if not (informed and learned and fixed):
        return ""
    said = [
        " and ".join(f"{100 * arrived_share(some, segment):.0f}%" for segment in range(len(WIDTHS)))
        for some in (learned, informed, fixed)
    ]
    return (
        f"Devices {scene}: with a learned split segments 1 and 2 arrive from {said[0]} of the "
        f"uploads; with a split that knows every distance from {said[1]}, with 0.8 and 0.2 for "
        f"all from {said[2]}."
    )


def _accuracy_words(scene: str, gaps: list[Difference]) -> str:
    """Which splits are told apart from the one for all, or how far apart they can be."""
    if not gaps:
        return ""
    told = [g for g in gaps if g.half_width is not None and abs(g.mean) > g.half_width]
    if told:
        listed = ", ".join(f"{g.larger} {standing.gap_words(g)}" for g in told)
        return f"Devices {scene}, points of accuracy over 0.8 and 0.2 for all: {listed}."
    widest = max(gaps, key=lambda g: standing.bound(g) or 0.0)
    return (
        f"Devices {scene}: the seeds tell no split apart from 0.8 and 0.2 for all in accuracy; "
        f"{standing.bound_words(widest)} for every split, the least certain being {widest.larger}."
    )


STUDY = Study(
    "split",
    "How to split the power",
    "What is gained by a split per device, and can the server learn it from what arrives?",
    cells,
    answer,
)
