"""Run the first rounds of archived cells again and compare them with the archive.

The same engine on a processor of the same kind, with the same versions of the packages that
compute, must give the same bits. Another one rounds differently, and Adam divides by small numbers,
so losses and accuracies drift apart; they are compared only in the first rounds. Everything else in
a line does not depend on them and must still be the same. If other initial weights were drawn, only
that rest is compared.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from lab import made_with
from lab.archive import UNKNOWN, ArchivedCell, find
from lab.cell import Cell
from slimfl.errors import RequestError
from slimfl.round import RoundRecord, Simulation

#: The field that differs between bit-identical runs.
TIMES = "seconds"
#: Fields that depend on the weights; the others depend on channel, data and settings.
LEARNED = ("accuracy", "loss", "training_loss")
#: Tolerance between engines: absolute for accuracies, relative for losses.
LEARNED_TOLERANCE = 0.05
#: Number of rounds in which the drift stays below that (0.1% in round 2, native against torch).
LEARNED_ROUNDS = 3
REST_TOLERANCE = 1e-9


class Measure(Enum):
    """How a repetition is compared with the archive."""

    BITS = "bit for bit"
    ROUNDING = "within float rounding, because another engine or processor made them"
    UNLEARNED = "without losses and accuracies, because other initial weights were drawn"


@dataclass(frozen=True)
class Verified:
    """One cell that was run again."""

    name: str
    rounds: int
    measure: Measure
    difference: str
    """The first difference, with round and field; empty if there is none."""

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "cell": self.name,
            "rounds": self.rounds,
            "compared": self.measure.value,
            "difference": self.difference or None,
        }


def archived(archive: Path, cells: Sequence[Cell]) -> list[tuple[Cell, ArchivedCell]]:
    """The cells that the archive has."""
    found = [(cell, entry) for cell in cells if (entry := find(archive, cell))]
    if not found:
        raise RequestError(f"{archive} contains no runs; give another --archive")
    return found


def choose(
    entries: Sequence[tuple[Cell, ArchivedCell]], count: int
) -> list[tuple[Cell, ArchivedCell]]:
    """Some of them at random, different ones each time."""
    return random.SystemRandom().sample(list(entries), min(count, len(entries)))


def verify(cell: Cell, entry: ArchivedCell, rounds: int) -> Verified:
    """Run the first rounds of a cell and compare."""
    simulation = Simulation(cell.grown)
    simulation.setting.check_provenance(entry.provenance)
    first = entry.made[0]
    measure = _measure(first, entry.experiment.engine, simulation.experiment.engine)
    count = min(rounds, entry.rounds, first["until"])
    difference = ""
    for before in entry.lines[:count]:
        now = simulation.step()
        difference = next(differences(now, before, measure), "")
        if difference:
            difference = f"round {before['round']}, {difference}"
            break
    return Verified(cell.name, count, measure, difference)


def _measure(first: dict[str, Any], engine_then: str, engine_now: str) -> Measure:
    here = made_with.versions()
    if first["weights"] not in (made_with.drawn_weights(), UNKNOWN):
        return Measure.UNLEARNED
    same = (
        first["engine"] == made_with.engine()
        and first["gains"] == made_with.drawn_gains()
        and engine_then == engine_now
        and all(first["versions"].get(name) == here[name] for name in ("torch", "numpy"))
    )
    return Measure.BITS if same else Measure.ROUNDING


def differences(now: RoundRecord, before: RoundRecord, measure: Measure) -> Iterator[str]:
    """Every field of the archived round that differs, with both values.

    Fields that an older version did not record are not compared.
    """
    ours, theirs = now.as_json(), before.as_json()
    for field in sorted({*theirs} - {TIMES}):
        if field in LEARNED and not _learned_alike(before, measure):
            continue
        tolerance = 0.0
        if measure is not Measure.BITS:
            tolerance = LEARNED_TOLERANCE if field in LEARNED else REST_TOLERANCE
        for place, one, other in _pairs(field, ours.get(field), theirs.get(field)):
            if not _close(one, other, tolerance):
                yield f"{place}: {one!r}, and the archive has {other!r}"


def _learned_alike(line: RoundRecord, measure: Measure) -> bool:
    """True if losses and accuracies are expected to be close."""
    early: bool = line.round <= LEARNED_ROUNDS
    return measure is Measure.BITS or (measure is Measure.ROUNDING and early)


def _pairs(place: str, one: Any, other: Any) -> Iterator[tuple[str, Any, Any]]:
    """Corresponding values of two structures; the structures themselves if their shapes differ."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key in one:
            yield from _pairs(f"{place}.{key}", one[key], other[key])
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (first, second) in enumerate(zip(one, other, strict=True)):
            yield from _pairs(f"{place}[{number}]", first, second)
    else:
        yield place, one, other


def _close(one: Any, other: Any, tolerance: float) -> bool:
    if isinstance(one, float) and isinstance(other, float) and tolerance:
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
    return bool(one == other)
