"""The closing table as data: every run, the groups over seeds, and Vanilla FL of all widths.

SlimFL replaces running the Vanilla FL of every width in parallel. With the widths 0.5 and 1.0 the
paper calls that Vanilla FL-1.5x. It is not a run but the sum of runs, each with its own end.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import reduce
from statistics import fmean
from typing import Any

from slimfl.methods import vanilla_all_name, vanilla_name
from slimfl.results.budget import AtBudget, compare_at_budget
from slimfl.results.groups import Group, by_scene, group, title
from slimfl.results.records import RunRecord
from slimfl.results.run_summary import RunSummary, run_summary
from slimfl.results.seed_summary import GroupSummary, seed_summary


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


def averaged_score(members: Group) -> AveragedScore | None:
    """The last tested mean of models of every seed; None if one has none."""
    tested = [[x for x in run.lines if x.averaged_accuracy] for run in members.runs]
    if not tested or not all(tested):
        return None
    last = [lines[-1].averaged_accuracy or {} for lines in tested]
    return AveragedScore(
        members.name,
        members.scene,
        members.runs[0].experiment.federation.average_last or 0,
        {width: fmean(each[width] for each in last) for width in last[0]},
    )


@dataclass(frozen=True)
class Summary:
    """Every run, and every group of runs over its seeds."""

    runs: list[RunSummary]
    groups: list[GroupSummary]
    budgets: list[AtBudget]
    """SlimFL beside the Vanilla FL runs that it replaces, where both were run."""
    averaged: list[AveragedScore]

    def as_json(self) -> dict[str, Any]:
        """Plain dictionaries, lists and numbers."""
        return {
            "runs": [run.as_json() for run in self.runs],
            "groups": [asdict(row) for row in self.groups],
        }


def summarise(records: Iterable[RunRecord]) -> Summary:
    """The closing table, with a row for the sum of Vanilla FL if all widths were run."""
    groups = by_scene(group(records))
    rows = [[run_summary(run) for run in each.runs] for each in groups]
    joined = {part[-1].setting: part for part in _vanilla_sets(groups)}
    runs: list[RunSummary] = []
    table: list[GroupSummary] = []
    budgets: list[AtBudget] = []
    for each, own in zip(groups, rows, strict=True):
        runs += own
        table.append(seed_summary(own, each.name, each.scene))
        parts = joined.get(each.setting)
        if parts and parts[-1] is each:
            every = vanilla_all_name(each.runs[0].experiment.model.widths)
            sums = _together([rows[groups.index(part)] for part in parts], every)
            if sums:
                runs += sums
                name = each.name.replace(title(each.method), title(every), 1)
                table.append(seed_summary(sums, name, each.scene, computed=True))
                slims = (g for g in groups if g.method == "slimfl" and g.setting == each.setting)
                found = (compare_at_budget(slim, parts, name, each.scene) for slim in slims)
                budgets += [one for one in found if one is not None]
    averaged = [score for each in groups if (score := averaged_score(each)) is not None]
    return Summary(runs, table, budgets, averaged)


def summaries(records: Iterable[RunRecord]) -> list[dict[str, Any]]:
    """The rows of all runs as plain data, for `--json`."""
    return [run.as_json() for run in summarise(records).runs]


def _vanilla_sets(groups: list[Group]) -> list[list[Group]]:
    """The Vanilla FL groups of each setting in which all widths were run."""
    complete = []
    for setting in dict.fromkeys(each.setting for each in groups):
        same = [each for each in groups if each.setting == setting]
        widths = same[0].runs[0].experiment.model.widths
        wanted = {vanilla_name(width) for width in widths}
        parts = [each for each in same if each.method in wanted]
        if len(parts) == len(wanted) > 1:
            complete.append(parts)
    return complete


def _together(parts: list[list[RunSummary]], name: str) -> list[RunSummary]:
    """The runs of each seed as one row: all accuracies, and the sum of costs."""
    by_seed = [{row.seed: row for row in rows} for rows in parts]
    common = [row.seed for row in parts[0] if all(row.seed in rows for rows in by_seed)]
    return [_sum([rows[seed] for rows in by_seed], name) for seed in dict.fromkeys(common)]


def _sum(rows: list[RunSummary], name: str) -> RunSummary:
    stops = [row.converged_round for row in rows if row.converged_round is not None]
    until = [row.until_converged for row in rows if row.until_converged is not None]
    images = [row.images for row in rows if row.images is not None]
    accuracy = {width: value for row in rows for width, value in row.accuracy.items()}
    every = len(rows)
    return replace(
        rows[0],
        method=name,
        path=None,
        rounds_done=max(row.rounds_done for row in rows),
        complete=all(row.complete for row in rows),
        accuracy=dict(sorted(accuracy.items(), key=lambda item: float(item[0][:-1]))),
        segments=[
            reduce(operator.add, same) for same in zip(*(r.segments for r in rows), strict=True)
        ],
        total=reduce(operator.add, [row.total for row in rows]),
        converged_round=max(stops) if len(stops) == every else None,
        until_converged=reduce(operator.add, until) if len(until) == every else None,
        refused=sum(row.refused for row in rows),
        images=sum(images) if len(images) == every else None,
        training_s=sum(row.training_s for row in rows),
        privacy=None,
        missing={},
        # one after the other, on devices that are fully charged again
        clock_s=_total(row.clock_s for row in rows),
        compute_energy_j=_total(row.compute_energy_j for row in rows),
        first_empty=None,
        half_empty=None,
    )


def _total(values: Iterable[float | None]) -> float | None:
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)
