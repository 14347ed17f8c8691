"""A question: the runs that it needs, and a function from them to tables, figures and claims.

The paper's tables and figures, our own studies and the planned questions all have this form.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, pstdev, stdev
from typing import TYPE_CHECKING, Any

from lab.cell import Cell
from lab.judge import Claim
from slimfl.results.records import RunRecord
from slimfl.results.rules import round_energy_j, run_learned_above, sending_energy_j
from slimfl.results.statistics import fluctuation
from slimfl.round import finished

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The existing runs by cell; cells that were never begun are absent.
Runs = Mapping[Cell, RunRecord]


@dataclass(frozen=True)
class Table:
    """Text and numbers in rows, as printed."""

    name: str
    title: str
    headings: list[str]
    rows: list[list[str]]

    def as_csv(self) -> str:
        """For a spreadsheet."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.headings, *self.rows])
        return text.getvalue()

    def as_markdown(self) -> str:
        """For a page."""
        rows = [self.headings, ["---"] * len(self.headings), *self.rows]
        return "".join(f"| {' | '.join(row)} |\n" for row in rows)


@dataclass(frozen=True)
class Picture:
    """A figure with its caption."""

    name: str
    caption: str
    figure: Figure


@dataclass(frozen=True)
class Answer:
    """What came out."""

    tables: list[Table]
    claims: list[Claim] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    """What to know about the tables; every number in it comes from them."""
    pictures: list[Picture] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    """The numbers behind it, unrounded."""


@dataclass(frozen=True)
class Question:
    """One question; `Any` is its kind of scale."""

    name: str
    title: str
    asks: str
    """What the paper says, or what a study asks."""
    cells: Callable[[Any], list[Cell]]
    answer: Callable[[Any, Runs], Answer]
    in_all: bool = True
    """False if it must be asked for by name."""


# What is read from runs


@dataclass(frozen=True)
class Final:
    """A width's accuracy at the end in percent, over runs that differ only in the seed."""

    by_seed: Mapping[int, float]
    """The mean over the last rounds."""
    over_rounds_by_seed: Mapping[int, float] = field(default_factory=dict)
    """Standard deviation over the last rounds."""
    is_finished: bool = True
    seeds_planned: int | None = None
    """Number of seeds in the end; None if no more are planned."""
    learned_above: float = 0.0
    """The accuracy that is better than guessing."""

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return fmean(self.by_seed.values())

    @property
    def deviation(self) -> float:
        """Between seeds; 0 for one."""
        values = list(self.by_seed.values())
        return stdev(values) if len(values) > 1 else 0.0

    @property
    def over_rounds(self) -> float:
        """Standard deviation over the last rounds, as a mean over seeds: the paper's ±."""
        return fmean(self.over_rounds_by_seed[seed] for seed in self.by_seed)

    @property
    def brief(self) -> str:
        """Mean and deviation over seeds."""
        several = len(self.by_seed) > 1
        return f"{self.mean:.1f}" + (f" ± {self.deviation:.1f}" if several else "")

    def __str__(self) -> str:
        spread = f"seeds ± {self.deviation:.1f}" if len(self.by_seed) > 1 else ""
        lacking = f"{len(self.by_seed)} of {self.seeds_planned} seeds" if self.seeds_planned else ""
        brackets = ", ".join(filter(None, (spread, lacking if self.is_finished else "")))
        words = f" ({brackets})" if brackets else ""
        mark = "" if self.is_finished else ", unfinished"
        return f"{self.mean:.1f} ± {self.over_rounds:.1f}{words}{mark}"


def shown(runs: Runs, cells: Sequence[Cell]) -> list[RunRecord]:
    """The finished runs or, while there are none, those that have been evaluated at least once.

    An unfinished run beside finished ones would only blur them.
    """
    records = [runs[cell] for cell in cells if cell in runs and runs[cell].evaluated]
    return [each for each in records if finished(each.experiment, each.lines)] or records


def complete(runs: Runs, cells: Sequence[Cell]) -> list[RunRecord]:
    """The records of those runs that have all their rounds, up to the last that is read."""
    there = [(cell, runs[cell]) for cell in cells if cell in runs]
    return [
        replace(record, experiment=cell.experiment, lines=record.lines[: cell.rounds])
        if record.experiment.rounds > cell.rounds  # another question reads more of the same run
        else record
        for cell, record in there
        if len(record.lines) >= cell.rounds
    ]


def final(runs: Runs, cells: Sequence[Cell], width: str, last: int) -> Final | None:
    """The mean over the last rounds of the runs that are shown; None if there is no run.

    For an unfinished run the window shrinks with its progress.
    """
    ends, limit, records = {}, 0.0, shown(runs, cells)
    for record in records:
        limit = max(limit, 100 * run_learned_above(record))
        tested = [line for line in record.evaluated if width in line.accuracy]
        if tested:
            reached = tested[-1].round
            since = reached - math.ceil(last * reached / record.experiment.rounds)
            late = [100 * line.accuracy[width] for line in tested if line.round > since]
            ends[record.experiment.seed] = late
    if not ends:
        return None
    return Final(
        {seed: fmean(end) for seed, end in ends.items()},
        {seed: pstdev(end) for seed, end in ends.items()},
        all(finished(each.experiment, each.lines) for each in records),
        len(cells) if len(ends) < len(cells) else None,
        limit,
    )


def late_accuracy(records: Iterable[RunRecord], width: str, share: float, rounds: int = 0) -> Final:
    """The mean of the tests in the last part of the rounds, in percent.

    Where that part has no test, the last test before it counts. Runs that have not come so far are
    left out.

    Args:
        records: Runs that differ in the seed.
        width: As in the metrics: `0.5x`.
        share: The part of the rounds that counts.
        rounds: The last round that is read; all rounds when 0.
    """
    found = {}
    for record in records:
        end = rounds or record.experiment.rounds
        tests = late_tests(record, width, share, end)
        if len(record.lines) >= end and tests:
            found[record.experiment.seed] = 100 * fmean(line.accuracy[width] for line in tests)
    return Final(found)


def late_tests(record: RunRecord, width: str, share: float, end: int) -> list[Any]:
    """The tests of a width in the last part of the rounds up to `end`, or the last before it."""
    tested = [line for line in record.evaluated if width in line.accuracy and line.round <= end]
    return [line for line in tested if line.round > (1 - share) * end] or tested[-1:]


def fluctuations(records: Iterable[RunRecord], width: str) -> dict[int, float]:
    """By seed, how much the accuracy jumps from test to test in the second half, in points.

    By successive differences, so that a trend adds little and every round counts.
    """
    found = {}
    for record in records:
        half = record.experiment.rounds / 2
        late = [line for line in record.evaluated if line.round > half and width in line.accuracy]
        moved = fluctuation([100 * e.accuracy[width] for e in late]) if len(late) > 1 else 0.0
        if moved:  # a ratio to none has no meaning
            found[record.experiment.seed] = moved
    return found


def arrived_shares(records: Sequence[RunRecord]) -> list[float]:
    """For every segment, the share of uploads in which it arrived."""
    uploads = sum(len(line.devices) for record in records for line in record.lines)
    counts = [line.delivered for record in records for line in record.lines]
    return [sum(column) / uploads for column in zip(*counts, strict=True)]


def spent(records: Sequence[RunRecord]) -> dict[str, float]:
    """What a run took, in the mean over seeds: airtime in s, energies in J, multiply-adds."""
    lines = [record.lines for record in records]
    airtime = fmean(sum(line.airtime_s for line in run) for run in lines)
    uploads = fmean(sum(len(line.devices) for line in run) for run in lines)
    return {
        "airtime": airtime,
        "airtime per upload": airtime / max(uploads, 1),
        "transmit energy": fmean(sending_energy_j(run) for run in lines),
        "computing": fmean(sum(line.multiply_adds or 0 for line in run) for run in lines),
        "all energy": fmean(sum(map(round_energy_j, run)) for run in lines),
    }
