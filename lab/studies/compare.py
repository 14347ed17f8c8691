"""What the studies share: runs under every seed, and who is told apart from whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from lab.cell import Cell, study_cell
from lab.judge import not_told_apart_words
from lab.question import Final, late_accuracy
from lab.scale import StudyScale
from slimfl.results.records import RunRecord
from slimfl.results.statistics import CONFIDENCE, Paired, holm, paired, with_pooled_deviation

WIDTHS = ("0.5x", "1.0x")


def each_seed(
    scale: StudyScale, method: str, seeds: int | None = None, **changes: Any
) -> list[Cell]:
    """The same run under every seed.

    Args:
        scale: How much work.
        method: Its name.
        seeds: Their number; the scale's when absent.
        changes: Further keys, with two underscores for the dot, and `rounds`.
    """
    count = scale.seeds if seeds is None else seeds
    return [study_cell(scale, method, seed, **changes) for seed in range(count)]


def final_of(records: Sequence[RunRecord], width: str, rounds: int = 0) -> Final:
    """The accuracy at the end of a study's runs, or at a round."""
    return late_accuracy(records, width, StudyScale.last_share, rounds)


@dataclass(frozen=True)
class Told:
    """A contrast with the deviation of its family, and whether it is told apart."""

    contrast: Paired
    p_holm: float | None

    @property
    def apart(self) -> bool:
        """Whether it stays after Holm's correction."""
        return self.p_holm is not None and self.p_holm < 1 - CONFIDENCE


def tell_apart(
    contrasts: Mapping[Any, Paired], family: Mapping[Any, str] | None = None
) -> dict[Any, Told]:
    """The contrasts of one question, with Holm's method over all.

    Contrasts over one common method are not independent, so they share no deviation.

    Args:
        contrasts: Paired by seed, by a key.
        family: By the same keys, what shares a deviation, such as settings of one alpha and width;
            nothing when absent.
    """
    pooled: dict[Any, Paired] = {}
    of = family or {key: str(key) for key in contrasts}
    several = sorted((k for k, c in contrasts.items() if c.seeds > 1), key=lambda k: of[k])
    for _, members in groupby(several, key=lambda k: of[k]):
        keys = list(members)
        shared = with_pooled_deviation([contrasts[key] for key in keys])
        pooled |= dict(zip(keys, shared, strict=True))
    tested = {key: each.p_student for key, each in pooled.items() if each.p_student is not None}
    adjusted = dict(zip(tested, holm(list(tested.values())), strict=True))
    return {k: Told(pooled.get(k, c), adjusted.get(k)) for k, c in contrasts.items()}


def highest(finals: Mapping[str, Final]) -> tuple[str, dict[str, Told]] | None:
    """The highest mean, and its lead over every other; None where nobody has been measured."""
    known = {name: one for name, one in finals.items() if one.by_seed}
    if not known:
        return None
    best = max(known, key=lambda name: known[name].mean)
    leads = {
        name: lead
        for name, one in known.items()
        if name != best and (lead := paired(known[best].by_seed, one.by_seed)) is not None
    }
    return best, tell_apart(leads)


def close_words(leads: Mapping[str, Told]) -> str:
    """Who is not told apart from the highest mean, each with its bound; empty for nobody."""
    listed = [
        f"{name} ({not_told_apart_words(told.contrast)})"
        for name, told in leads.items()
        if not told.apart
    ]
    return f"; not told apart from it: {', '.join(listed)}" if listed else ""
