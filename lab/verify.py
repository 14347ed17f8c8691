"""Run the first rounds of archived cells again and compare them with the archive.

The same engine on a processor of the same kind, with the same versions of the packages that
compute, must give the same bits. Another one rounds differently, and Adam divides by small numbers,
so losses and accuracies drift apart; they are compared only in the first rounds, and not at all if
other initial weights were drawn. Everything else in a line does not depend on them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab import made_with
from lab.archive import ArchivedCell, find
from lab.cell import Cell
from slimfl.errors import RequestError
from slimfl.round import RoundRecord, Simulation

#: The field that differs between bit-identical runs.
TIMES = "seconds"
#: Fields that depend on the weights; the others depend on channel, data and settings.
LEARNED = ("accuracy", "loss", "training_loss")
#: Tolerances between engines, relative and absolute: of what is learned, and of the rest.
LEARNED_TOLERANCE, REST_TOLERANCE = 0.05, 1e-9
#: Number of rounds in which the drift stays below that (0.1% in round 2, native against torch).
LEARNED_ROUNDS = 3
#: How a repetition is compared.
BITS = "bit for bit"
ROUNDING = "within float rounding, because another engine or processor made them"
UNLEARNED = "without losses and accuracies, because other initial weights were drawn"


@dataclass(frozen=True)
class Verified:
    """One cell that was run again."""

    cell: str
    rounds: int
    compared: str
    difference: str | None
    """The first difference, with round and field."""

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


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
    with entry.unpacked() as folder:
        simulation.setting.check_provenance(folder.provenance())
        same_engine = folder.experiment().engine == simulation.experiment.engine
    first = entry.made[0]
    compared = _compared(first, same_engine)
    count = min(rounds, entry.rounds, first["until"])
    for before in entry.lines[:count]:
        found = next(differences(simulation.step(), before, compared), None)
        if found:
            return Verified(cell.name, count, compared, f"round {before.round}, {found}")
    return Verified(cell.name, count, compared, None)


def _compared(first: dict[str, Any], same_engine: bool) -> str:
    here = made_with.here()
    if first["weights"] not in (here["weights"], "unknown"):
        return UNLEARNED
    same = same_engine and all(first[key] == here[key] for key in ("engine", "gains"))
    versions = (
        first["versions"].get(name) == here["versions"][name] for name in ("torch", "numpy")
    )
    return BITS if same and all(versions) else ROUNDING


def differences(now: RoundRecord, before: RoundRecord, compared: str) -> Iterator[str]:
    """Every field of the archived round that differs, with both values.

    Fields that an older version did not record are not compared.
    """
    ours, theirs = now.as_json(), before.as_json()
    early = compared == ROUNDING and before.round <= LEARNED_ROUNDS
    for field in sorted({*theirs} - {TIMES}):
        if field in LEARNED and compared != BITS and not early:
            continue
        tolerance = 0.0
        if compared != BITS:
            tolerance = LEARNED_TOLERANCE if field in LEARNED else REST_TOLERANCE
        for place, one, other in _pairs(field, ours.get(field), theirs.get(field)):
            if not _close(one, other, tolerance):
                yield f"{place}: {one!r}, and the archive has {other!r}"


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
