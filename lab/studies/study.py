"""A study: the runs that a question needs, and what it makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lab.reproduction.cells.cell import Cell
from lab.reproduction.exhibits.exhibit import Table
from lab.studies.scale import StudyScale
from slimfl.results import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The runs that there are, by their cell; a cell that was never begun is absent.
Runs = Mapping[Cell, RunRecord]


def finished(cells: Sequence[Cell], runs: Runs) -> list[RunRecord]:
    """The records of those runs that have all their rounds."""
    return [runs[cell] for cell in cells if cell in runs and len(runs[cell].lines) >= cell.rounds]


def arrived_share(records: Sequence[RunRecord], segment: int) -> float:
    """How often a segment of a device arrived, over all rounds and devices."""
    counts = [line.delivered[segment] for record in records for line in record.lines]
    devices = records[0].experiment.federation.devices
    return sum(counts) / (len(counts) * devices)


@dataclass(frozen=True)
class Titled:
    """A table with the sentence that stands above it."""

    name: str
    title: str
    table: Table


@dataclass(frozen=True)
class Picture:
    """A figure with its caption."""

    name: str
    caption: str
    figure: Figure


@dataclass(frozen=True)
class Answer:
    """What came out."""

    sentences: list[str]
    """The plain answer, the short one first; every number in it comes from the tables."""
    tables: list[Titled]
    pictures: list[Picture]
    data: dict[str, Any] = field(default_factory=dict)
    """The numbers behind it, unrounded."""


@dataclass(frozen=True)
class Study:
    """One question."""

    name: str
    title: str
    question: str
    cells: Callable[[StudyScale], list[Cell]]
    answer: Callable[[StudyScale, Runs], Answer]
