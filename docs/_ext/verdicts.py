"""The paper's claims beside our runs, from docs/results/reproduction/standard.

Shorter scales are not shown: nothing has converged in them, so they tell nothing about the paper.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lab.reproduction.page import printed

VERDICTS = ("agrees", "agrees in order only", "differs", "undecided", "not run", "unfinished")
SCALE = "standard"
COMMAND = f"python -m lab reproduce all vanilla --scale {SCALE} --as-is"
#: The exhibit that measures what no source settles; it has a section of its own.
CHOICES = "choices"
#: The study of the paper's Vanilla FL; it has a page of its own.
VANILLA = "vanilla"
#: Both have no claims of the paper, and so no verdict.
OURS = (CHOICES, VANILLA)


class ResultsError(Exception):
    """The committed results are missing or not of the form that the page needs."""


def texts(results: Path) -> dict[str, str]:
    """Verdicts, the numbers behind them, choices and the study of Vanilla FL.

    Args:
        results: The folder with one folder per scale.
    """
    document = read(results)
    made = {
        "verdicts": verdicts,
        "exhibits": exhibits,
        "tally": tally,
        "table III in short": table3,
        "choices": choices,
        "vanilla": vanilla,
    }
    return {name: "\n".join(make(document)) for name, make in made.items()}


def read(results: Path) -> dict[str, Any]:
    """The results, checked; they remember their folder."""
    path = results / SCALE / "results.json"
    if not path.is_file():
        raise ResultsError(f"there is no {path}: make it with `{COMMAND}` and commit it")
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        _check(document)
    except (ValueError, KeyError, TypeError) as error:
        what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise ResultsError(f"{path} cannot be used: {what}") from error
    return {**document, "folder": path.parent}


def _check(document: dict[str, Any]) -> None:
    for key in ("scale", "command", "versions", "engine", "seeds", "rule", "exhibits"):
        document[key]
    for exhibit in document["exhibits"]:
        for key in ("name", "title", "paper", "verdict", "claims"):
            exhibit[key]
        judged = [exhibit, *exhibit["claims"]] if exhibit["name"] not in OURS else exhibit["claims"]
        for one in judged:
            if one["verdict"] not in VERDICTS:
                raise ValueError(f"{one['verdict']!r} in {exhibit['name']} is no verdict")
        given = exhibit.get("table")
        for row in given["rows"] if given else ():
            if len(row) != len(given["headings"]):
                raise ValueError(f"a row of {exhibit['name']} is not as long as its headings")


def verdicts(document: dict[str, Any]) -> list[str]:
    """One row per exhibit, and how the runs were made."""
    rows = [[e["title"], e["paper"], _verdict(e)] for e in _papers(document)]
    return [
        *_table(["exhibit", "what the paper claims", "verdict"], rows),
        "",
        f"The rule: {document['rule']}",
        "",
        f"The runs: {_made(document)}",
        *_missing(document),
    ]


def tally(document: dict[str, Any]) -> list[str]:
    """How many of the paper's exhibits agree."""
    shown = _papers(document)
    judged = [e["verdict"] for e in shown]
    counts = {verdict: judged.count(verdict) for verdict in VERDICTS if verdict in judged}
    if set(counts) <= set(printed.OPEN):
        return ["No table or figure is finished yet."]
    words = ", ".join(f"{verdict}: {count}" for verdict, count in counts.items())
    early = [
        f"{e['title'].partition(':')[0]} ({printed.rests_on(e)})"
        for e in shown
        if printed.has_open_claims(e)
    ]
    more = f" Judged only in part: {', '.join(early)}." if early else ""
    return [f"`{document['command']}`, {len(judged)} tables and figures: {words}.{more}"]


def table3(document: dict[str, Any]) -> list[str]:
    """Table III: a row per finished setting, ours beside the paper's in brackets."""
    found = _find(document, "table3")
    columns = [
        claim
        for claim in (found["claims"] if found else ())
        if claim.get("about", {}).get("measure") == "accuracy"
        and claim["verdict"] not in printed.OPEN
    ]
    if not columns:
        return ["No setting is finished yet."]
    rows = [
        [
            f"{claim['about']['channel']}, α = {claim['about']['alpha']:g}",
            *(f"{_one(c, 'ours')} ({_one(c, 'paper')})" for c in claim["comparisons"]),
            claim["verdict"],
            _seeds(claim),
        ]
        for claim in columns
    ]
    names = [f"{each['quantity']}, %" for each in columns[0]["comparisons"]]
    command = f"Made by `{document['command']}`"
    return [
        *_table(["channel and data", *names, "verdict", "seeds"], rows),
        "",
        f"Ours, and the paper's in brackets. {command}. ± is the deviation over seeds or, with one "
        "seed, over its last rounds; in the paper over rounds.",
        "",
        *(f"* {printed.pair(pair[0])}: {_range(pair)}." for pair in _differences(columns)),
    ]


def _differences(claims: list[dict[str, Any]]) -> list[tuple[dict[str, Any], ...]]:
    """Each pair of methods, with its difference in every setting."""
    return list(zip(*(claim.get("differences") or () for claim in claims), strict=True))


def _range(differences: Iterable[dict[str, Any]]) -> str:
    known = list(differences)
    means = sorted(each["mean"] for each in known)
    certain = [each for each in known if each["low"] is not None]
    apart = sum(each["low"] > 0 or each["high"] < 0 for each in certain)
    intervals = f"; of {len(certain)} intervals over seeds (95%), {apart} exclude zero"
    return f"{means[0]:+.1f} to {means[-1]:+.1f} points, over the settings" + (
        intervals if certain else ""
    )


def _one(comparison: dict[str, Any], side: str) -> str:
    digits = 1 if side == "ours" else 0
    return f"{comparison[side]:.{digits}f} ± {comparison[f'{side}_deviation']:.1f}"


def exhibits(document: dict[str, Any]) -> list[str]:
    """A section per exhibit: its table and figure, and folded every claim with its numbers."""
    lines = []
    for exhibit in _papers(document):
        lines += [f"### {exhibit['title']}", "", f"The paper: {_cell(exhibit['paper'])}", ""]
        lines += [f"Ours: {_verdict(exhibit)}", ""]
        shown, behind = _shown(exhibit, document), _behind(exhibit, document)
        if exhibit["verdict"] in printed.OPEN:
            lines += _fold(f"{exhibit['title']}: results so far", [*shown, *behind])
        else:
            lines += [*shown, *_fold(f"{exhibit['title']}: every claim", behind)]
    return lines


def _verdict(exhibit: dict[str, Any]) -> str:
    basis = printed.rests_on(exhibit)
    return f"**{exhibit['verdict']}**" + (f" ({basis})" if basis else "")


def _papers(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The paper's exhibits."""
    return [exhibit for exhibit in document["exhibits"] if exhibit["name"] not in OURS]


def _missing(document: dict[str, Any]) -> list[str]:
    """Every run that lacks rounds, by its name."""
    runs = document.get("missing")
    if not runs:
        return []
    rows = [
        [each["run"], f"{each['rounds_done']} of {each['rounds']}", ", ".join(each["needed_for"])]
        for each in runs
    ]
    table = _table(["run", "rounds", "needed for"], rows)
    return ["", *_fold(f"Unfinished runs: {len(runs)}", [*table, ""])]


def choices(document: dict[str, Any]) -> list[str]:
    """The measured effect of what no source settles."""
    found = _find(document, CHOICES)
    if found is None:
        raise ResultsError(
            f"there is no exhibit named {CHOICES!r}: the effect of the choices that no source "
            "settles is not measured"
        )
    return [*_shown(found, document), *_behind(found, document)]


def vanilla(document: dict[str, Any]) -> list[str]:
    """What each reading gave, or that nothing was run yet."""
    found = _find(document, VANILLA)
    if found and any(cell[:1].isdigit() for row in found["table"]["rows"][1:] for cell in row):
        notes = [f"* {note}" for note in found.get("notes", ())]
        made = f"Made by `{document['command']}` with the {_versions(document)}."
        return [*notes, "", *_shown(found, document), made]
    return ["No runs of this study have been committed yet, so there is no answer."]


def _shown(exhibit: dict[str, Any], document: dict[str, Any]) -> list[str]:
    """Figures and table."""
    lines = []
    for figure in exhibit.get("figures", ()):
        source = document["folder"] / figure
        if not source.is_file():
            raise ResultsError(f"{source}, a figure of {exhibit['name']}, is missing")
        place = f"results/reproduction/{document['folder'].name}/{figure}"  # as seen from docs/
        lines += [f"![{exhibit['title']}]({place})", ""]
    if given := exhibit.get("table"):
        lines += [*_table(given["headings"], given["rows"]), ""]
    return lines


def _fold(title: str, lines: list[str]) -> list[str]:
    if not lines:
        return []
    return ["<details>", f"<summary>{html.escape(title)}</summary>", "", *lines, "</details>", ""]


def _behind(exhibit: dict[str, Any], document: dict[str, Any]) -> list[str]:
    """Claims and notes, without how all runs are shortened, which the page says once."""
    lines = []
    if exhibit["claims"]:
        rows = [row for claim in exhibit["claims"] for row in _claim(claim)]
        heads = ["claim", "where", "quantity", "paper", "ours", "verdict", "seeds"]
        lines += [*_table(heads, rows), ""]
    notes = [note for note in exhibit.get("notes", ()) if note != document.get("shortened")]
    lines += [f"* {note}" for note in notes]
    return lines + ([""] if notes else [])


def _claim(claim: dict[str, Any]) -> list[list[str]]:
    """One row per comparison and per difference; claim, verdict and seeds are named once."""
    rows = [
        [
            "",
            "",
            comparison["quantity"],
            printed.papers(comparison) or "not given",
            printed.ours(comparison),
            "",
            "",
        ]
        for comparison in claim.get("comparisons") or ()
    ] or [[""] * 7]
    rows[0][0], rows[0][1], rows[0][5] = claim["text"], claim.get("source", ""), claim["verdict"]
    rows[0][6] = _seeds(claim)
    rows += [
        ["", "", printed.pair(each), "", printed.difference(each), "", ""]
        for each in claim.get("differences") or ()
    ]
    if claim.get("reason"):
        rows[0][5] += f". {claim['reason']}"
    return rows


def _seeds(claim: dict[str, Any]) -> str:
    """A number, or how many of the planned ones."""
    return printed.claim_seeds(claim).removesuffix("seeds").removesuffix("seed").strip()


def _made(document: dict[str, Any]) -> str:
    planned = " (planned)" if document.get("unfinished") else ""
    seeds = ", ".join(str(seed) for seed in document["seeds"]) + planned
    shortened = document.get("shortened")
    return (
        f"`{document['command']}`, seeds {seeds}, {_versions(document)}."
        + (f" {shortened.rstrip('.')}." if shortened else "")
        + (f" **{document['unfinished']}**" if document.get("unfinished") else "")
    )


def _versions(document: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    return f"{document['engine']} engine, {versions}"


def _find(document: dict[str, Any], name: str) -> dict[str, Any] | None:
    return next((e for e in document["exhibits"] if e["name"] == name), None)


def _table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    heads = [_cell(head) for head in headings]
    body = [[_cell(cell) for cell in row] for row in rows]
    return [f"| {' | '.join(line)} |" for line in [heads, ["---"] * len(heads), *body]]


def _cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "\\<")
