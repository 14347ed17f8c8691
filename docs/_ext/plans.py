"""What the planned runs say, from docs/results/plans/NAME.json."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from convergence import table


def texts(results: Path) -> dict[str, str]:
    """One fragment with all plans of which runs are finished."""
    documents = [json.loads(path.read_text("utf-8")) for path in sorted(results.glob("*.json"))]
    begun = [each for each in documents if each["finished"]]
    begun.sort(key=lambda each: each["finished"] < each["planned"])
    return {"plans": "\n".join(line for each in begun for line in shown(each))}


def shown(document: dict[str, Any]) -> Iterator[str]:
    """A section of the page."""
    finished, planned = document["finished"], document["planned"]
    yield f"## {document['title']}\n"
    yield " ".join(document["question"].split()) + "\n"
    equal = ", ".join(document["equal"])
    yield (
        f"{finished} of {planned} runs are finished (`python -m lab plan run {document['plan']}`; "
        f"seeds {document['seeds'][0]} to {document['seeds'][-1]})."
        + (f" Equal in the arms: {equal}." if equal else "")
        + (" **Preliminary.**" if finished < planned else "")
        + "\n"
    )
    settings = any("setting" in row for row in document["contrasts"])
    headings = ["setting"] * settings + [
        "question", "seeds", "difference [95% interval]", "seeds ahead", "p", "told apart?",
    ]  # fmt: skip
    yield table(
        headings, ([row.get("setting", "")] * settings + line(row) for row in document["contrasts"])
    )
    yield table(
        ["setting"] * settings
        + ["arm", "accuracy, %", "delivered, % per segment", "airtime, s", "sending, J", "all, J"],
        ([row.get("setting", "")] * settings + arm(row) for row in document["arms"]),
    )
    yield f"Judged so: {' '.join(document['test'].split())}\n"


def line(row: dict[str, Any]) -> list[str]:
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
        str(row["seeds"]),
        f"{row['mean']:{sign}.2f}{interval}" + (" times" if ratio else " points"),
        f"{row['seeds ahead']} of {row['seeds']}",
        "" if p is None else f"{p:.2g}" + (" (Holm)" if row["role"] == "secondary" else ""),
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
