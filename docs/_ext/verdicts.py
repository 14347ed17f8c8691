"""The paper's claims beside our runs, from docs/results/reproduction/standard.

Shorter scales are not shown: nothing has converged in them, so they tell nothing about the paper.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from convergence import table

from lab.judge import JUDGED, counted
from lab.make import verdict_words

COMMAND = "python -m lab reproduce all vanilla --scale standard --as-is"
#: Questions with a section or a page of their own.
APART = ("budget", "choices", "vanilla")


class ResultsError(Exception):
    """The committed results are missing or not of the form that the page needs."""


def texts(results: Path) -> dict[str, str]:
    """The fourteen claims, every table and figure, and three questions of their own.

    Args:
        results: The folder with one folder per scale.
    """
    document = read(results)
    try:
        found = {each["name"]: each for each in document["questions"]}
        own = {name: "\n".join(question(found[name])) for name in APART}
        papers = [each for name, each in found.items() if name not in APART]
        return {
            **own,
            "claims": claims(document),
            "verdicts": verdicts(papers),
            "exhibits": "\n".join(line for each in papers for line in section(each)),
            "runs behind it": made(document),
            "tally": tally(document),
            "table III in short": table3(found["table3"]),
        }
    except (KeyError, IndexError, TypeError) as error:
        raise ResultsError(f"{results / 'standard'} cannot be used: it has no {error}") from error


def read(results: Path) -> dict[str, Any]:
    """The results of `standard`."""
    path = results / "standard" / "results.json"
    if not path.is_file():
        raise ResultsError(f"there is no {path}: make it with `{COMMAND}` and commit it")
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ResultsError(f"{path} cannot be used: {error}") from error
    return document


def claims(document: dict[str, Any]) -> str:
    """C1 to C14: claim, the paper's number, ours with its interval, verdict, evidence."""
    rows = [
        [row["name"], row["claim"], row["paper"], row["ours"], f"**{verdict_words(row)}**",
         row["evidence"]]
        for row in document["headlines"]
    ]  # fmt: skip
    return shown_table(["", "claim", "the paper", "ours", "verdict", "evidence"], rows)


def verdicts(papers: Sequence[dict[str, Any]]) -> str:
    """One row per table and figure, with the counts of its verdicts."""
    rows = [[each["title"], each["asks"], each["verdicts"] or "no claim"] for each in papers]
    return shown_table(["exhibit", "what the paper claims", "verdicts on its claims"], rows)


def tally(document: dict[str, Any]) -> str:
    """How the fourteen claims came out."""
    words = [row["verdict"] for row in document["headlines"]]
    judged = [each for each in words if each in JUDGED]
    mixed = len(words) - len(judged) - words.count("by construction") - words.count("no verdict")
    return (
        f"The paper's fourteen claims, `{document['command']}`: {counted(words)}"
        + (f", mixed {mixed}" if mixed else "")
        + ". Most rest on fewer than five seeds and are preliminary."
    )


def table3(one: dict[str, Any]) -> str:
    """Table III with a row per setting: ours, and the paper's in brackets."""
    (shown,) = one["tables"]
    papers, ours = ([row for row in shown["rows"] if row[1] == who] for who in ("paper", "ours"))
    rows = [
        [where, *(f"{mine[i]} ({row[i]})" for row, mine in zip(papers, ours, strict=True))]
        for i, where in enumerate(shown["headings"])
        if i > 1
    ]
    names = [f"{row[0]}, %" for row in papers]
    return shown_table(["channel and data", *names], rows) + (
        "\nOurs, and the paper's in brackets. ± is the deviation over the last rounds; the one "
        "over seeds is named."
    )


def made(document: dict[str, Any]) -> str:
    """How the runs were made, and which are unfinished."""
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    lines = [
        f"The rule: {document['rule']}",
        "",
        f"The runs: `{document['command']}`, {document['engine']} engine, {versions}. "
        f"{document['what_is_run']} **{document['unfinished']}**",
    ]
    rows = [
        [each["run"], f"{each['rounds_done']} of {each['rounds']}", ", ".join(each["needed_for"])]
        for each in document["missing"]
    ]
    if rows:
        folded = [shown_table(["run", "rounds", "needed for"], rows)]
        lines += ["", *fold(f"Unfinished runs: {len(rows)}", folded)]
    return "\n".join(lines)


def section(one: dict[str, Any]) -> list[str]:
    """A table or figure under its heading."""
    return [f"### {one['title']}", "", f"The paper: {one['asks']}", "", *question(one)]


def question(one: dict[str, Any]) -> list[str]:
    """Verdicts, pictures and tables, and folded every claim and what to know."""
    lines = [f"Ours: **{one['verdicts']}**", ""] if one["verdicts"] else []
    for picture in one["pictures"]:
        lines += [f"![{picture['caption']}](results/reproduction/standard/{picture['file']})", ""]
    lines += [line for each in one["tables"] for line in (table_of(each), "")]
    notes = [f"* {said}" for said in one["sentences"]]
    if not one["claims"]:
        return [*lines, *notes, ""]
    rows = [
        [
            f"{claim['text']} ({claim['source']})" if claim["source"] else claim["text"],
            claim["paper"],
            claim["ours"],
            verdict_words(claim) + (f". {claim['reason']}" if claim["reason"] else ""),
        ]
        for claim in one["claims"]
    ]
    folded = [shown_table(["claim", "the paper", "ours", "verdict"], rows), *notes, ""]
    return [*lines, *fold(f"{one['title']}: every claim", folded)]


def table_of(one: dict[str, Any]) -> str:
    """A table of the results."""
    return shown_table(one["headings"], one["rows"])


def shown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table whose cells have neither bars nor tags."""
    return table([cell(head) for head in headings], ([cell(c) for c in row] for row in rows))


def cell(text: str) -> str:
    """One line without what a table or HTML would read."""
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "\\<")


def fold(title: str, lines: Iterable[str]) -> list[str]:
    """Lines that open on a click."""
    return ["<details>", f"<summary>{html.escape(title)}</summary>", "", *lines, "</details>", ""]
