"""The closing table as data: every run, the groups over seeds, and Vanilla FL of all widths.

SlimFL replaces running the Vanilla FL of every width in parallel. With the widths 0.5 and 1.0 the
paper calls that Vanilla FL-1.5x. It is not a run but the sum of runs, each with its own end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, stdev
from typing import Any

import pandas as pd

from slimfl.methods import vanilla_all_name, vanilla_name
from slimfl.methods.names import title
from slimfl.results.budget import AtBudget, compare_at_budget
from slimfl.results.groups import Group, by_scene, group
from slimfl.results.per_run import RunRow, run_summary, with_share
from slimfl.results.records import RunRecord
from slimfl.results.statistics import EQUAL_WITHIN

#: What runs one after the other, on devices that are fully charged again, spend together.
_SUMMED = (
    "segments", "total", "until_converged", "refused", "images", "training_s", "clock_s",
    "compute_energy_j",
)  # fmt: skip


@dataclass(frozen=True)
class GroupRow:
    """One method over its seeds."""

    name: str
    scene: str
    method: str
    computed: bool
    """True if it is a sum of other rows."""
    runs: list[RunRow]
    """One per seed."""

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row per seed, with columns such as `total.energy_j` and `segments.1.sent_mb`."""
        return pd.DataFrame([dict(_leaves(run)) for run in self.runs], index=self.seeds)

    @property
    def seeds(self) -> list[int]:
        """The seeds in order."""
        return [run["seed"] for run in self.runs]

    @property
    def widths(self) -> list[str]:
        """The names of the widths that were tested."""
        return next((list(run["accuracy"]) for run in self.runs if run["accuracy"]), [])

    @property
    def segments(self) -> int:
        """The number of segments."""
        return len(self.runs[0]["segments"])

    def mean(self, key: str) -> float | None:
        """The mean of a column over the seeds; None unless every seed has a value."""
        values = self._values(key)
        return None if values is None else fmean(values)

    def deviation(self, key: str) -> float | None:
        """The sample standard deviation over the seeds; None also with a single seed."""
        values = self._values(key)
        return None if values is None or len(values) < 2 else stdev(values)

    def total(self, key: str) -> float:
        """The sum of a column over the seeds."""
        return float(self.frame[key].sum())

    def accuracy(self, width: str, kind: str = "final") -> pd.Series:
        """By seed: the final or best accuracy at a width, without runs that have just begun."""
        key = f"accuracy.{width}.{kind}"
        return self.frame[key].dropna() if key in self.frame else pd.Series(dtype=float)

    def accuracy_mean(self, width: str) -> float | None:
        """The mean of the final accuracy over the seeds that were tested."""
        values = self.accuracy(width)
        return fmean(values) if len(values) else None

    def accuracy_deviation(self, width: str) -> float:
        """Shown after ±: over seeds or, with a single seed, over rounds. It compares nothing."""
        values = self.accuracy(width)
        over_rounds = self.accuracy(width, "deviation")
        return stdev(values) if len(values) > 1 else fmean(over_rounds)

    @property
    def learned_above(self) -> float:
        """The accuracy, a fraction of 1, above which a network is better than guessing."""
        return float(self.frame["learned_above"].max())

    def has_learned(self, width: str) -> bool:
        """True if the mean accuracy at this width is significantly better than guessing."""
        return (self.accuracy_mean(width) or 0.0) > self.learned_above

    def as_json(self) -> dict[str, Any]:
        """What the group is, and every number of its seeds as mean and deviation."""
        keys = self.frame.select_dtypes("number").columns.drop("seed")
        numbers = {
            key: {"mean": mean, "deviation": self.deviation(key)}
            for key in keys
            if (mean := self.mean(key)) is not None
        }
        words = {"name": self.name, "scene": self.scene, "method": self.method}
        return words | {"computed": self.computed, "seeds": self.seeds} | numbers

    def _values(self, key: str) -> pd.Series | None:
        values = self.frame[key].astype(float) if key in self.frame else None
        return None if values is None or values.hasnans else values


@dataclass(frozen=True)
class AveragedScore:
    """What the mean of the last models reached: a second score beside the final accuracy."""

    name: str
    scene: str
    models: int
    accuracy: dict[str, float]
    """By the name of the width, a fraction of 1; the mean over seeds."""

    @property
    def words(self) -> str:
        """The score as a sentence."""
        reached = "; ".join(f"{width}: {100 * a:.1f} %" for width, a in self.accuracy.items())
        return (
            f"Second score, beside the final accuracy: the mean of the last {self.models} models "
            f"of {self.name} reaches {reached}."
        )

    @classmethod
    def of(cls, members: Group) -> AveragedScore | None:
        """The last tested mean of models of every seed; None if one has none."""
        tested = [[x.averaged_accuracy or {} for x in run.lines] for run in members.runs]
        last = [next(filter(None, reversed(scores)), None) for scores in tested]
        known = [scores for scores in last if scores]
        if len(known) < len(last):
            return None
        models = members.runs[0].experiment.federation.average_last or 0
        accuracy = {width: fmean(scores[width] for scores in known) for width in known[0]}
        return cls(members.name, members.scene, models, accuracy)


#: In what methods can agree, and where a run's row has it.
BUDGETS = {
    "rounds": "rounds_done",
    "airtime": "total.airtime_s",
    "transmit energy": "total.energy_j",
    "computing": "total.paper_gflops",
}


def footing(rows: Sequence[GroupRow]) -> tuple[list[str], list[str]]:
    """The budgets in which several methods agree in the mean over seeds, and the others."""
    equal: list[str] = []
    unequal: list[str] = []
    for budget, key in BUDGETS.items():
        spent = [value for row in rows if (value := row.mean(key)) is not None]
        if len(spent) == len(rows):
            agree = max(spent) <= (1 + EQUAL_WITHIN) * min(spent)
            (equal if agree else unequal).append(budget)
    return equal, unequal


@dataclass(frozen=True)
class Summary:
    """Every run, and every group of runs over its seeds."""

    runs: list[RunRow]
    groups: list[GroupRow]
    budgets: list[AtBudget]
    """SlimFL beside the Vanilla FL runs that it replaces, where both were run."""
    averaged: list[AveragedScore]

    def as_json(self) -> dict[str, Any]:
        """Plain dictionaries, lists and numbers."""
        return {"runs": self.runs, "groups": [row.as_json() for row in self.groups]}


def summarise(records: Iterable[RunRecord]) -> Summary:
    """The closing table, with a row for the sum of Vanilla FL if all widths were run."""
    groups = by_scene(group(records))
    rows = {id(each): [run_summary(run) for run in each.runs] for each in groups}
    runs: list[RunRow] = []
    table: list[GroupRow] = []
    budgets: list[AtBudget | None] = []
    for each in groups:
        runs += rows[id(each)]
        table.append(GroupRow(each.name, each.scene, each.method, False, rows[id(each)]))
        widths = each.runs[0].experiment.model.widths
        wanted, every = {vanilla_name(width) for width in widths}, vanilla_all_name(widths)
        same = [other for other in groups if other.setting == each.setting]
        parts = [other for other in same if other.method in wanted]
        if len(parts) < len(wanted) or len(wanted) == 1 or parts[-1] is not each:
            continue
        by_seed = [{row["seed"]: row for row in rows[id(part)]} for part in parts]
        common = [seed for seed in by_seed[0] if all(seed in one for one in by_seed)]
        if common:
            sums = [_added([one[seed] for one in by_seed], every) for seed in common]
            runs += sums
            name = each.name.replace(title(each.method), title(every), 1)
            table.append(GroupRow(name, each.scene, every, True, sums))
            slims = (other for other in same if other.method == "slimfl")
            budgets += [compare_at_budget(slim, parts, name, each.scene) for slim in slims]
    averaged = map(AveragedScore.of, groups)
    return Summary(runs, table, [*filter(None, budgets)], [*filter(None, averaged)])


def summaries(records: Iterable[RunRecord]) -> list[RunRow]:
    """The rows of all runs as plain data, for `--json`."""
    return summarise(records).runs


def _added(rows: list[RunRow], name: str) -> RunRow:
    accuracy = {width: value for row in rows for width, value in row["accuracy"].items()}
    stops = [row["converged_round"] for row in rows]
    sums = {key: _total([row[key] for row in rows]) for key in _SUMMED}
    images, training_s = sums["images"], sums["training_s"]
    return (
        rows[0]
        | sums
        | dict.fromkeys(("path", "privacy", "first_empty", "half_empty"))
        | {
            "method": name,
            "rounds_done": max(row["rounds_done"] for row in rows),
            "complete": all(row["complete"] for row in rows),
            "accuracy": dict(sorted(accuracy.items(), key=lambda item: float(item[0][:-1]))),
            "segments": [with_share(segment) for segment in sums["segments"]],
            "converged_round": None if None in stops else max(stops),
            "images_per_s": images / training_s if images and training_s else None,
        }
    )


def _total(values: Sequence[Any]) -> Any:
    """The sum of numbers, part by part; None unless all have one."""
    first = values[0]
    if any(value is None for value in values):
        return None
    if isinstance(first, dict):
        return {key: _total([value[key] for value in values]) for key in first}
    if isinstance(first, list):
        return [_total(same) for same in zip(*values, strict=True)]
    return sum(values)


def _leaves(tree: Mapping[str, Any], where: str = "") -> Iterable[tuple[str, Any]]:
    """The numbers and words of nested data under dotted keys; lists count from 1."""
    for key, value in tree.items():
        inner = dict(enumerate(value, 1)) if isinstance(value, list) else value
        if isinstance(inner, dict):
            yield from _leaves({str(k): v for k, v in inner.items()}, f"{where}{key}.")
        else:
            yield where + key, inner
