"""The paper's claims beside our runs, from docs/results/reproduction/SCALE/results.json."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from slimfl.reproduction.page import printed

VERDICTS = ("agrees", "agrees in order only", "differs", "undecided", "not run", "unfinished")
#: Shown in this order; other scales come before the last.
ORDER = {"standard": 0, "small": 1, "paper": 3}
#: The exhibit that measures what no source settles; it has a section of its own.
CHOICES = "choices"
#: The study of the paper's Vanilla FL; it has a page of its own.
VANILLA = "vanilla"
#: Both have no claims of the paper, and so no verdict.
OURS = (CHOICES, VANILLA)
#: Checks that everything runs: nothing has learned there, so it tells nothing about the paper.
NOT_SHOWN = "smoke"


class ResultsError(Exception):
    """The committed results are missing or not of the form that the page needs."""


def texts(results: Path) -> dict[str, str]:
    """Verdicts, the numbers behind them, choices and the study of Vanilla FL.

    Args:
        results: The folder with one folder per scale.
    """
    documents = read(results)
    made = {
        "verdicts": verdicts,
        "exhibits": exhibits,
        "tally": tally,
        "table III in short": table3,
        "choices": choices,
        "vanilla": vanilla,
    }
    return {name: "\n".join(make(documents)) for name, make in made.items()}


def read(results: Path) -> dict[str, dict[str, Any]]:
    """The results of every scale, by its name, checked; each remembers its folder."""
    found = sorted(p for p in results.glob("*/results.json") if p.parent.name != NOT_SHOWN)
    if not found:
        raise ResultsError(
            f"there is no {results}/SCALE/results.json: make it with "
            "`slimfl reproduce all --scale small` and commit it"
        )
    documents = {}
    for path in found:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            _check(document)
        except (ValueError, KeyError, TypeError) as error:
            what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise ResultsError(f"{path} cannot be used: {what}") from error
        documents[document["scale"]] = {**document, "folder": path.parent}
    return dict(sorted(documents.items(), key=lambda item: (ORDER.get(item[0], 2), item[0])))


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


def verdicts(documents: dict[str, dict[str, Any]]) -> list[str]:
    """One row per exhibit, and how the runs were made."""
    rows = []
    for name, exhibit in _papers(documents).items():
        judged = [_find(document, name) for document in documents.values()]
        rows.append(
            [
                exhibit["title"],
                exhibit["paper"],
                *(_verdict(e) if e else "" for e in judged),
            ]
        )
    lines = [*_table(["exhibit", "what the paper claims", *documents], rows), ""]
    newest = next(iter(documents.values()))["rule"]
    lines += [f"The rule: {newest}", ""]
    for name, document in documents.items():
        if document["rule"] != newest:
            title = f"The earlier rule that {name} was judged by"
            lines += _fold(title, [document["rule"], ""])
    for name, document in documents.items():
        lines += [f"* **{name}**: {_made(document)}"]
    for name, document in documents.items():
        lines += _missing(name, document)
    return lines


def tally(documents: dict[str, dict[str, Any]]) -> list[str]:
    """How many of the paper's exhibits agree, for every scale that has finished some."""
    lines = []
    for document in documents.values():
        shown = [e for e in document["exhibits"] if e["name"] not in OURS]
        judged = [e["verdict"] for e in shown]
        counts = {verdict: judged.count(verdict) for verdict in VERDICTS if verdict in judged}
        if set(counts) <= set(printed.OPEN):
            continue
        words = ", ".join(f"{verdict}: {count}" for verdict, count in counts.items())
        early = [
            f"{e['title'].partition(':')[0]} ({printed.rests_on(e)})"
            for e in shown
            if printed.has_open_claims(e)
        ]
        more = f" Judged only in part: {', '.join(early)}." if early else ""
        lines += [f"* `{document['command']}`, {len(judged)} tables and figures: {words}.{more}"]
    return lines or ["No scale is finished yet."]


def table3(documents: dict[str, dict[str, Any]]) -> list[str]:
    """Table III of the longest runs: a row per setting, ours beside the paper's in brackets."""
    for document in documents.values():
        found = _find(document, "table3")
        columns = [
            claim
            for claim in (found["claims"] if found else ())
            if claim.get("about", {}).get("measure") == "accuracy"
            and claim["verdict"] not in printed.OPEN
        ]
        if columns:
            break
    else:
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


def exhibits(documents: dict[str, dict[str, Any]]) -> list[str]:
    """A section per exhibit: its table and figure, and folded every claim with its numbers."""
    lines = []
    for name, exhibit in _papers(documents).items():
        lines += [f"### {exhibit['title']}", "", f"The paper: {_cell(exhibit['paper'])}", ""]
        for scale, document in documents.items():
            if found := _find(document, name):
                lines += [f"Ours at scale {scale}: {_verdict(found)}", ""]
                shown, title = _shown(found, document), f"{exhibit['title']} at scale {scale}"
                if found["verdict"] in printed.OPEN:
                    lines += _fold(f"{title}: results so far", [*shown, *_behind(found)])
                else:
                    lines += [*shown, *_fold(f"{title}: every claim", _behind(found))]
    return lines


def _verdict(exhibit: dict[str, Any]) -> str:
    basis = printed.rests_on(exhibit)
    return f"**{exhibit['verdict']}**" + (f" ({basis})" if basis else "")


def _papers(documents: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The paper's exhibits by name."""
    return {
        exhibit["name"]: exhibit
        for document in documents.values()
        for exhibit in document["exhibits"]
        if exhibit["name"] not in OURS
    }


def _missing(scale: str, document: dict[str, Any]) -> list[str]:
    """Every run that lacks rounds, by its name."""
    runs = document.get("missing")
    if not runs:
        return []
    rows = [[each["run"], f"{each['rounds_done']} of {each['rounds']}"] for each in runs]
    title = f"Unfinished runs of {scale}: {len(runs)}"
    return ["", *_open(title), *_table(["run", "rounds"], rows), "", "</details>", ""]


def choices(documents: dict[str, dict[str, Any]]) -> list[str]:
    """The measured effect of what no source settles."""
    lines = []
    for scale, document in documents.items():
        if found := _find(document, CHOICES):
            lines += [f"**{found['title']}** ({scale}: {_made(document)})", ""]
            lines += _exhibit(found, document)
    if not lines:
        raise ResultsError(
            f"no scale has an exhibit named {CHOICES!r}: the effect of the choices that no source "
            "settles is not measured"
        )
    return lines


def vanilla(documents: dict[str, dict[str, Any]]) -> list[str]:
    """What each reading gave, or that nothing was run yet."""
    lines = []
    for scale, document in documents.items():
        found = _find(document, VANILLA)
        if found and any(cell[:1].isdigit() for row in found["table"]["rows"][1:] for cell in row):
            lines += [*(f"* {note}" for note in found.get("notes", ())), ""]
            lines += [*_shown(found, document), f"At scale {scale}: {_made(document)}", ""]
    return lines or ["No runs of this study have been committed yet, so there is no answer."]


def _exhibit(exhibit: dict[str, Any], document: dict[str, Any]) -> list[str]:
    return [*_shown(exhibit, document), *_behind(exhibit)]


def _shown(exhibit: dict[str, Any], document: dict[str, Any]) -> list[str]:
    """Figures and table."""
    lines = []
    for figure in exhibit.get("figures", ()):
        source = document["folder"] / figure
        if not source.is_file():
            raise ResultsError(f"{source}, a figure of {exhibit['name']}, is missing")
        place = f"results/reproduction/{document['folder'].name}/{figure}"  # as seen from docs/
        lines += [f"![{exhibit['title']}, {document['scale']} scale]({place})", ""]
    if given := exhibit.get("table"):
        lines += [*_table(given["headings"], given["rows"]), ""]
    return lines


def _fold(title: str, lines: list[str]) -> list[str]:
    return [*_open(title), *lines, "</details>", ""] if lines else []


def _behind(exhibit: dict[str, Any]) -> list[str]:
    """Claims and notes."""
    lines = []
    if exhibit["claims"]:
        rows = [row for claim in exhibit["claims"] for row in _claim(claim)]
        heads = ["claim", "where", "quantity", "paper", "ours", "verdict", "seeds"]
        lines += [*_table(heads, rows), ""]
    lines += [f"* {note}" for note in exhibit.get("notes", ())]
    return lines + ([""] if exhibit.get("notes") else [])


def _claim(claim: dict[str, Any]) -> list[list[str]]:
    """One row per comparison and per difference; claim, verdict and seeds are named once."""
    rows = [
        [
            "",
            "",
            comparison["quantity"],
            _value(comparison, "paper"),
            _value(comparison, "ours"),
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


def _value(comparison: dict[str, Any], side: str) -> str:
    value, deviation = comparison[side], comparison.get(f"{side}_deviation")
    if value is None:
        return "not given" if side == "paper" else printed.ours({"reached": True, **comparison})
    unit = comparison.get("unit") or ""
    spread = "" if deviation is None else f" ± {deviation:.4g}"
    return f"{value:.4g}{spread}{' ' if unit else ''}{unit}"


def _made(document: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    planned = " (planned)" if document.get("unfinished") else ""
    seeds = ", ".join(str(seed) for seed in document["seeds"]) + planned
    shortened = document.get("shortened")
    return (
        f"`{document['command']}`, {document['engine']} engine, seeds {seeds}, {versions}"
        + "."
        + (f" {shortened.rstrip('.')}." if shortened else "")
        + (f" **{document['unfinished']}**" if document.get("unfinished") else "")
    )


def _find(document: dict[str, Any], name: str) -> dict[str, Any] | None:
    return next((e for e in document["exhibits"] if e["name"] == name), None)


def _open(title: str) -> list[str]:
    return ["<details>", f"<summary>{html.escape(title)}</summary>", ""]


def _table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    heads = [_cell(head) for head in headings]
    body = [[_cell(cell) for cell in row] for row in rows]
    return [f"| {' | '.join(line)} |" for line in [heads, ["---"] * len(heads), *body]]


def _cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "\\<")
