"""What the planned runs say, from lab/plans/NAME.toml and docs/results/plans/NAME.json."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from math import isclose
from pathlib import Path
from typing import Any

from convergence import table

from lab.plan import NamedPlan, load, names
from lab.planned import EQUAL_WITHIN


def texts(results: Path) -> dict[str, str]:
    """One fragment: the answered questions, then those of which runs are missing."""
    answered, unfinished = [], []
    for planned in map(load, names()):
        path = results / f"{planned.name}.json"
        document = json.loads(path.read_text("utf-8")) if path.is_file() else {"finished": 0}
        if document["finished"] == len(planned.runs):
            answered += shown(planned, document)
        else:
            unfinished += still_open(planned, document["finished"])
    return {"plans": "\n".join([*answered, *unfinished])}


def begun(planned: NamedPlan) -> Iterator[str]:
    """The question, and what was expected."""
    yield f"## {planned.plan.title}\n"
    yield " ".join(planned.plan.question.split()) + "\n"
    yield f"Expected before the runs: {' '.join(planned.plan.prediction.split())}\n"


def still_open(planned: NamedPlan, finished: int) -> Iterator[str]:
    """A question without an answer: nothing is judged before all runs are there."""
    yield from begun(planned)
    yield (
        f"**Unfinished:** {finished} of {len(planned.runs)} runs ({made(planned)}). It is judged "
        f"when all are there. {' '.join(planned.plan.test.split())}\n"
    )


def made(planned: NamedPlan) -> str:
    """How the runs are made."""
    seeds = planned.plan.seeds
    return f"`python -m lab plan run {planned.name}`; seeds {seeds[0]} to {seeds[-1]}"


def equal_words(planned: NamedPlan) -> str:
    """Which arms agree in what, beside the number of rounds."""
    plan = planned.plan
    told = [
        f"{quantity} ({'all' if set(arms) == set(plan.arms) else ', '.join(arms)})"
        for quantity, arms in plan.equal.items()
    ]
    return "; ".join(["rounds (all)", *told])


def shown(planned: NamedPlan, document: dict[str, Any]) -> Iterator[str]:
    """The section of an answered question."""
    yield from begun(planned)
    outside = document["outside the plan"]
    yield (
        f"All {document['finished']} runs are finished ({made(planned)}). Equal in the arms: "
        f"{equal_words(planned)}."
        + f" **{outside} runs are outside the plan.**" * bool(outside)
        + "\n"
    )
    settings = any("setting" in row for row in document["contrasts"])
    headings = ["setting"] * settings + [
        "question", "equal rounds and", "seeds", "difference [95% interval]", "expected",
        "seeds above 0 or 1", "p", "p by sign flips", "told apart?",
    ]  # fmt: skip
    yield table(
        headings,
        (
            [row.get("setting", "")] * settings + line(row, equal_in(row, document["arms"]))
            for row in document["contrasts"]
        ),
    )
    yield table(
        ["setting"] * settings
        + ["arm", "accuracy, %", "delivered, % per segment", "airtime, s", "sending, J", "all, J"],
        ([row.get("setting", "")] * settings + arm(row) for row in document["arms"]),
    )
    yield f"Judged so: {' '.join(document['test'].split())}\n"


def equal_in(row: dict[str, Any], arms: Sequence[dict[str, Any]]) -> str:
    """In which budgets the two arms of a contrast agreed, as measured."""
    first, second = (
        next(
            each["spent"]
            for each in arms
            if (each["arm"], each.get("setting")) == (row[side], row.get("setting"))
        )
        for side in ("of", "over")
    )
    budgets = ("airtime", "transmit energy", "computing")
    return ", ".join(b for b in budgets if isclose(first[b], second[b], rel_tol=EQUAL_WITHIN))


def line(row: dict[str, Any], equal: str) -> list[str]:
    """A contrast."""
    ratio = row["scale"] == "ratio"
    sign = "" if ratio else "+"
    interval = (
        f" [{row['low']:{sign}.2f}, {row['high']:{sign}.2f}]" if row["low"] is not None else ""
    )
    p = row["p, Holm"] if row["role"] == "secondary" else row["p"]
    return [
        f"{row['contrast']}: {row['of']} {'over' if ratio else 'against'} {row['over']}"
        + (" (**primary**)" if row["role"] == "primary" else ""),
        equal or "nothing else",
        str(row["seeds"]),
        f"{row['mean']:{sign}.2f}{interval}" + (" times" if ratio else " points"),
        row["predicted"],
        f"{row['seeds ahead']} of {row['seeds']}",
        "" if p is None else f"{p:.2g}" + (" (Holm)" if row["role"] == "secondary" else ""),
        "" if (flips := row["p, sign flips"]) is None else f"{flips:.2g}",
        "yes" if row["decided"] else "no",
    ]


def arm(row: dict[str, Any]) -> list[str]:
    """What an arm reached and took."""
    spent = row["spent"]
    accuracy = ", ".join(f"{width}: {value:.1f}" for width, value in row["accuracy"].items())
    return [
        row["arm"],
        accuracy,
        " / ".join(f"{100 * share:.1f}" for share in row["delivered"]),
        f"{spent['airtime']:.4g}",
        f"{spent['transmit energy']:.4g}",
        f"{spent['all energy']:.4g}",
    ]
