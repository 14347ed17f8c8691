"""What the runs of a plan say: measures by seed, contrasts with intervals, and what is equal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from lab.archive import stamp_of
from lab.plan import Contrast, Measure, NamedPlan, PlannedRun
from lab.question import arrived_shares, spent
from slimfl.errors import RequestError
from slimfl.results.records import RunRecord
from slimfl.results.statistics import (
    EQUAL_WITHIN,
    Paired,
    equivalence_margin,
    fluctuation,
    holm,
    paired,
)


@dataclass(frozen=True)
class Judged:
    """A contrast in one setting, with its numbers."""

    setting: str
    contrast: Contrast
    role: str
    outcome: Paired
    adjusted_p: float | None = None
    """By Holm's method among the secondary contrasts of the plan."""

    @property
    def decided(self) -> bool:
        """Whether the contrast is told apart by its own rule, with enough seeds."""
        if self.outcome.preliminary or self.role == "exploratory":
            return False
        p = self.adjusted_p if self.role == "secondary" else self.outcome.p_student
        return p is not None and p < 0.05


@dataclass(frozen=True)
class Answer:
    """Everything that the runs so far say."""

    planned: NamedPlan
    records: Mapping[PlannedRun, RunRecord]
    """Finished runs only."""
    outside: list[PlannedRun]
    """Runs that this version of the plan did not ask for before they began."""
    judged: list[Judged]

    @property
    def complete(self) -> bool:
        """Whether every planned run is finished."""
        return len(self.records) == len(self.planned.runs)

    def arm(self, setting: str, arm: str) -> list[RunRecord]:
        """The finished runs of an arm in a setting."""
        where = (setting, arm)
        return [rec for run, rec in self.records.items() if (run.setting, run.arm) == where]

    def values(self, setting: str, arm: str, measure: Measure) -> dict[int, float]:
        """A measure by seed."""
        plan = self.planned.plan
        return {
            rec.experiment.seed: value
            for rec in self.arm(setting, arm)
            if (value := measured(rec, measure, plan.late_from)) is not None
        }


def answer(planned: NamedPlan, cache: Path) -> Answer:
    """Read the finished runs of a plan and judge its contrasts.

    Refused if arms that the plan calls equal in a budget are not, or if an arm of several segments
    never sent one of them.
    """
    records, outside = {}, []
    for run in planned.runs:
        record = run.cell.record(cache)
        if record is not None and run.is_finished(cache):
            records[run] = record
            if not _was_planned(planned, run, cache):
                outside.append(run)
    found = Answer(planned, records, outside, [])
    _check_budgets(found)
    _check_segments(found)
    return replace(found, judged=_judged(found))


def measured(record: RunRecord, measure: Measure, late_from: int) -> float | None:
    """One number of a run; None where the width was not tested."""
    if measure.score == "mean of the last models":
        averaged = record.lines[-1].averaged_accuracy
        return 100 * averaged[measure.width] if averaged and measure.width in averaged else None
    late = [line.accuracy for line in record.lines if line.round >= late_from]
    tests = [100 * accuracy[measure.width] for accuracy in late if measure.width in accuracy]
    if not tests:
        return None
    rules: dict[str, Callable[[list[float]], float]] = {
        "late tests": fmean,
        "fluctuation": fluctuation,
        "worst late test": min,
    }
    return rules[measure.score](tests)


def _check_budgets(found: Answer) -> None:
    plan = found.planned.plan
    for setting in plan.settings:
        for quantity, arms in plan.equal.items():
            ready = {arm: recs for arm in arms if (recs := found.arm(setting, arm))}
            seeds = (
                set.intersection(*({r.experiment.seed for r in rs} for rs in ready.values()))
                if ready
                else set()
            )
            took = {
                arm: spent([r for r in recs if r.experiment.seed in seeds])[quantity]
                for arm, recs in ready.items()
                if seeds
            }
            if took and max(took.values()) > (1 + EQUAL_WITHIN) * min(took.values()):
                told = ", ".join(f"{arm} {value:.6g}" for arm, value in took.items())
                raise RequestError(
                    f"{found.planned.name}: {quantity} is not equal as planned ({told}); correct "
                    "the plan's arms before anything is concluded"
                )


def _check_segments(found: Answer) -> None:
    """An arm that trains several widths and never delivered one of them compares something else."""
    plan = found.planned.plan
    for setting in plan.settings:
        for arm in plan.arms:
            records = found.arm(setting, arm)
            if records and records[0].experiment.method == "slimfl":
                shares = arrived_shares(records)
                if min(shares) == 0:
                    raise RequestError(
                        f"{found.planned.name}: in {setting or 'all runs'} no segment "
                        f"{1 + shares.index(0)} of {arm} ever arrived; choose another split"
                    )
                lines = [line for record in records for line in record.lines]
                if min(shares) < 1 and all(len({*line.delivered}) == 1 for line in lines):
                    raise RequestError(
                        f"{found.planned.name}: in {setting or 'all runs'} the segments of {arm} "
                        "arrived only together, so it is one message; choose another split"
                    )


def _judged(found: Answer) -> list[Judged]:
    plan = found.planned.plan
    judged = []
    for setting in plan.settings:
        for contrast in plan.contrasts:
            first = found.values(setting, contrast.of, contrast.measure)
            width = contrast.over_width or contrast.measure.width
            other = contrast.measure.model_copy(update={"width": width})
            second = found.values(setting, contrast.over, other)
            outcome = paired(first, second, ratio=contrast.scale == "ratio")
            if outcome is None:
                continue
            elsewhere = plan.primary_setting not in (None, setting)
            role = "secondary" if elsewhere and contrast.role == "primary" else contrast.role
            judged.append(Judged(setting, contrast, role, outcome))
    tested = [i for i, j in enumerate(judged) if j.role == "secondary" and j.outcome.p_student]
    adjusted = holm([judged[i].outcome.p_student or 0.0 for i in tested])
    for i, p in zip(tested, adjusted, strict=True):
        judged[i] = replace(judged[i], adjusted_p=p)
    return judged


def _was_planned(planned: NamedPlan, run: PlannedRun, cache: Path) -> bool:
    stamp = stamp_of(run.cell, cache)
    if not stamp.is_file():
        return False
    return bool(json.loads(stamp.read_text())["sha256"] == planned.digest)


def table(found: Answer) -> list[dict[str, Any]]:
    """One row per contrast and setting, as plain values."""
    rows = []
    for each in found.judged:
        low, high = each.outcome.interval() or (None, None)
        margin = equivalence_margin(each.outcome)
        rows.append(
            {
                **({"setting": each.setting} if each.setting else {}),
                "contrast": each.contrast.name,
                "of": each.contrast.of,
                "over": each.contrast.over,
                "score": each.contrast.measure.score,
                "scale": each.contrast.scale,
                "role": each.role,
                "predicted": each.contrast.predicted,
                "mean": each.outcome.mean,
                "low": low,
                "high": high,
                "seeds": each.outcome.seeds,
                "seeds ahead": each.outcome.ahead,
                "p": each.outcome.p_student,
                "p, Holm": each.adjusted_p,
                "p, sign flips": each.outcome.p_sign_flip,
                "equivalent within": margin,
                "decided": found.complete and each.decided,
            }
        )
    return rows


def document(found: Answer) -> dict[str, Any]:
    """What the runs say, as plain values: a row per contrast, and per arm what it took and gave."""
    plan = found.planned.plan
    return {
        "plan": found.planned.name,
        "title": plan.title,
        "question": plan.question,
        "prediction": plan.prediction,
        "test": plan.test,
        "stop": plan.stop,
        "sha256": found.planned.digest,
        "seeds": plan.seeds,
        "planned": len(found.planned.runs),
        "finished": len(found.records),
        "outside the plan": len(found.outside),
        "equal": plan.equal,
        "contrasts": table(found),
        "arms": [
            row
            for setting in plan.settings
            for arm in plan.arms
            for row in _arm(found, setting, arm)
        ],
    }


def _arm(found: Answer, setting: str, arm: str) -> Iterator[dict[str, Any]]:
    records = found.arm(setting, arm)
    if not records:
        return
    accuracy = {
        width: found.values(setting, arm, Measure(width=width, score="late tests"))
        for width in records[0].lines[-1].accuracy
    }
    yield {
        **({"setting": setting} if setting else {}),
        "arm": arm,
        "method": records[0].experiment.method,
        "seeds": len(records),
        "accuracy": {width: fmean(values.values()) for width, values in accuracy.items()},
        "by seed": accuracy,
        "delivered": arrived_shares(records),
        "spent": spent(records),
    }
