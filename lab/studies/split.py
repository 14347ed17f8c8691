"""How to split the power: one split for all, one per device, or one that the server learns.

The devices are those of `rivals`' population `cell`. At rest a device stays where it is; moving, it
walks about the cell, so that a good device becomes a poor one during the run. A split per device
knows every device's distance at all times; the learned one knows only what was decoded.
"""

from __future__ import annotations

from statistics import fmean, stdev
from typing import Any

from lab.cell import Cell
from lab.drawing import Line, line_figure
from lab.judge import gap_words, not_told_apart_words
from lab.question import Answer, Picture, Question, Runs, Table, arrived_shares, complete
from lab.scale import StudyScale
from lab.studies.compare import WIDTHS, final_of, tell_apart
from lab.studies.rivals import DEVICES, PER_DEVICE, Entry, runs_of
from slimfl.results.records import RunRecord
from slimfl.results.statistics import Paired, paired

#: 2 m/s with 10 s between rounds: 20 m per round, across the cell and back in a run.
MOVING = {"radio__speed_m_s": 2.0, "radio__round_s": 10.0}
SCENES: dict[str, dict[str, Any]] = {"at rest": {}, "moving": MOVING}
FIXED = "0.8 and 0.2 for all"
SPLITS: dict[str, dict[str, Any]] = {
    FIXED: {},
    "best for all (the bound's D)": {"radio__split": "optimal"},
    "per device, by the bound": {"radio__split": "per-device"},
    "per device, equal weights": PER_DEVICE,
    "learned, equal weights": {**PER_DEVICE, "radio__split": "learned"},
}
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
    records = {
        (scene, split): found
        for scene in SCENES
        for split in SPLITS
        if (found := complete(runs, split_runs(scale, scene, split)))
    }
    finals = {(*key, w): final_of(some, w) for key, some in records.items() for w in WIDTHS}
    contrasts: dict[Any, Paired] = {
        key: contrast
        for key, one in finals.items()
        if key[1] != FIXED
        and (base := finals.get((key[0], FIXED, key[2])))
        and (contrast := paired(one.by_seed, base.by_seed))
    }
    told = tell_apart(contrasts)
    tables, sentences, pictures = [], [], []
    data: dict[str, Any] = {scene: {} for scene in SCENES}
    for scene in SCENES:
        rows, lines = [], []
        for split in (s for s in SPLITS if (scene, s) in records):
            some = records[scene, split]
            row = [split, str(len(some))]
            for width in WIDTHS:
                one = told.get((scene, split, width))
                row += [finals[scene, split, width].brief, gap_words(one.contrast if one else None)]
                by_seed = dict(finals[scene, split, width].by_seed)
                data[scene].setdefault(split, {})[width] = by_seed
            rows.append([*row, *(f"{100 * share:.0f}" for share in arrived_shares(some))])
            if split != FIXED and (scene, FIXED) in records:
                lines.append(_over_time(split, some, records[scene, FIXED]))
        headings = ["split", "seeds", "0.5x, %", "over 0.8 and 0.2", "1.0x, %", "over 0.8 and 0.2",
                    "segment 1 arrived, %", "segment 2 arrived, %"]  # fmt: skip
        name = scene.replace(" ", "-")
        tables.append(Table(name, f"Devices {scene}.", headings, rows))
        if lines:
            sentences.append(
                _accuracy_words(scene, {k: t for k, t in told.items() if k[0] == scene})
            )
            caption = (
                f"Segments delivered per device and round, more than with {FIXED} under the same "
                f"seed; devices {scene}, means over ten rounds. Bars are deviations over seeds."
            )
            drawn = line_figure(lines, "round", "more segments per device and round",
                                f"devices {scene}")  # fmt: skip
            pictures.append(Picture(name, caption, drawn))
    return Answer(tables, [], sentences, pictures, data)


def _over_time(split: str, records: list[RunRecord], reference: list[RunRecord]) -> Line:
    """Segments per device and round over those of the reference, in windows of rounds."""
    mine, base = (
        {each.experiment.seed: _by_window(each) for each in some} for some in (records, reference)
    )
    seeds = sorted(mine.keys() & base.keys())
    more = [[a - b for a, b in zip(mine[s], base[s], strict=True)] for s in seeds]
    windows = list(zip(*more, strict=True))
    ends = [min(WINDOW * (i + 1), len(records[0].lines)) for i in range(len(windows))]
    bars = [stdev(each) if len(each) > 1 else 0.0 for each in windows]
    return Line(split, ends, list(map(fmean, windows)), bars, dashed=split.startswith("learned"))


def _by_window(record: RunRecord) -> list[float]:
    """Segments per device and round in every window of rounds, the last of which may be shorter."""
    counts = [sum(line.delivered) for line in record.lines]
    windows = [counts[begin : begin + WINDOW] for begin in range(0, len(counts), WINDOW)]
    return [sum(each) / (DEVICES * len(each)) for each in windows]


def _accuracy_words(scene: str, told: dict[Any, Any]) -> str:
    """Which splits are told apart from the one for all, or how far apart they can be."""
    apart = [f"{k[1]} at {k[2]} {gap_words(t.contrast)}" for k, t in told.items() if t.apart]
    if apart:
        return f"Devices {scene}, points of accuracy over {FIXED}: {', '.join(apart)}."
    key = max(told, key=lambda k: max(map(abs, told[k].contrast.interval(0.90) or (0.0,))))
    return (
        f"Devices {scene}: the seeds tell no split apart from {FIXED} in accuracy; "
        f"{not_told_apart_words(told[key].contrast)} for every split, the least certain being "
        f"{key[1]} at {key[2]}."
    )


SPLIT = Question(
    "split",
    "How to split the power",
    "What is gained by a split per device, and can the server learn it from what arrives?",
    cells,
    answer,
)
