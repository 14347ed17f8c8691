"""The HTML page of a reproduction: the paper's claims, our tables and curves, and the verdicts.

One file: figures are embedded, and it loads nothing. Its sentences on the use of SlimFL follow only
from the results (`findings`). All text is escaped here.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from lab.reproduction.judging import paired
from lab.reproduction.judging.verdict import Verdict
from lab.reproduction.page import findings, printed
from lab.reproduction.page.findings import Finding
from slimfl.errors import RequestError
from slimfl.report.atomic_write import atomic_write
from slimfl.report.pages.page_shell import asset, page_shell, section

#: The style and the sign of every verdict, distinguishable without colour.
_MARKS = {
    Verdict.AGREES: ("agrees", "✓"),
    Verdict.ORDER: ("order", "◐"),
    Verdict.DIFFERS: ("differs", "✗"),
    Verdict.UNDECIDED: ("open", "?"),
    Verdict.NOT_RUN: ("open", "○"),
    Verdict.UNFINISHED: ("open", "…"),
}
#: The first word of the sentence on the scale if there is something to warn of.
_SHORTENED = "Shortened"
_INTRODUCTION = (
    "SlimFL trains one width-adjustable network on many devices that never show their data, over "
    "unreliable radio links. A device sends its network in one transmission as two superposed "
    "halves. The left half is the half-width network (0.5x) and gets more power; the right half, "
    "which completes the full width (1.0x), gets less. Over a bad link the server still "
    "decodes the left half, and it averages whatever arrived.",
    "It is compared with Vanilla FL, which trains a network of one fixed width and sends it all or "
    "nothing. Two such runs are needed for both widths; together they are called Vanilla FL-1.5x.",
)
_GLOSSARY = {
    "good and poor channel": "Two noise levels on the radio link, as in the paper's experiments.",
    "α": "How evenly the classes are spread over the devices: at 0.1 most devices hold a few "
    "classes, at 10 all hold nearly the same mix.",
    "±": "One standard deviation: over seeds or, with one seed, over the last rounds.",
}


def write_page(document: Mapping[str, Any], out: Path) -> Path:
    """Write OUT/index.html from the results, with embedded figures."""
    path, contents = out / "index.html", page(document, out)
    with atomic_write(path) as temporary:
        temporary.write_text(contents, encoding="utf-8")
    return path


def page(document: Mapping[str, Any], out: Path) -> str:
    """The whole page as text; figures are read from the folder `out`."""
    exhibits: list[Mapping[str, Any]] = document["exhibits"]
    found = findings.findings(document)
    count = f"{len(exhibits)} tables and figures" if len(exhibits) > 1 else "1 table or figure"
    return page_shell(
        kind="python -m lab reproduce",
        title="SlimFL: the paper's claims and our results",
        subtitle=f"{count} · scale {document['scale']}",
        contents=[
            ("slimfl", "What SlimFL is"),
            ("result", "Results"),
            *((each["name"], _link(each)) for each in exhibits),
            ("made", "How this was made"),
        ],
        main="".join(
            [
                section("slimfl", "What SlimFL is", _introduction()),
                section("result", "Results", _result(document, found)),
                *(
                    section(each["name"], _heading(each), _exhibit(each, document, out), "exhibit")
                    for each in exhibits
                ),
                section("made", "How this was made", _made(document)),
            ]
        ),
        css=asset("lab.reproduction.page", "page.css"),
    )


def _introduction() -> str:
    words = "".join(
        f"<div><dt>{_text(k)}</dt><dd>{_text(v)}</dd></div>" for k, v in _GLOSSARY.items()
    )
    said = "".join(f"<p class='lead'>{_text(each)}</p>" for each in _INTRODUCTION)
    return f"{said}<dl class='words'>{words}</dl>"


def _result(document: Mapping[str, Any], found: findings.Findings) -> str:
    scale = _text(document["shortened"])
    if _is_shortened(document):
        scale = f"<strong>These runs are shortened</strong>{scale.removeprefix(_SHORTENED)}"
    tallies = "".join(f"<li>{_text(each)}</li>" for each in found.tallies)
    theory = "".join(f"<li>{_text(each)}</li>" for each in findings.THEORY)
    by_theory = f"<h4>In theory, regardless of the runs</h4><ul class='theory'>{theory}</ul>"
    nothing = "Nothing in these results."
    warning = " class='shortened'" if _is_shortened(document) else ""
    uses = (
        _use("good", "What SlimFL is good for", found.good_for, nothing),
        _use("not", "When not to use it", found.not_for, nothing, by_theory),
        _use("tie", "Where it makes no difference", found.ties, nothing),
        _use("open", "What these results cannot tell", found.unknown, "Nothing is missing."),
    )
    return (
        f"<p{warning}>{scale}</p>{_unfinished(document)}"
        f"{_counts(document['exhibits'])}"
        + (f"<ul class='headline'>{tallies}</ul>" if tallies else "")
        + f"<div class='uses'>{''.join(uses)}</div><p class='note'>{_text(findings.RULE)}</p>"
        f"<h3>How verdicts are made</h3><p>{_text(document['rule'])}</p>"
        f"<p>{_text(paired.RULE)}</p>"
    )


def _counts(exhibits: Sequence[Mapping[str, Any]]) -> str:
    """The number of tables, figures and claims per verdict."""
    of_exhibits = Counter(each["verdict"] for each in exhibits)
    of_claims = Counter(claim["verdict"] for each in exhibits for claim in each["claims"])
    rows = "".join(
        f"<tr><th scope='row'>{_badge(verdict)}</th><td>{of_exhibits[verdict]}</td>"
        f"<td>{of_claims[verdict]}</td></tr>"
        for verdict in _MARKS
        if of_exhibits[verdict] or of_claims[verdict]
    )
    if not rows:
        return "<p>Nothing here can be compared with a claim of the paper.</p>"
    head = "<th scope='col'>verdict</th><th scope='col'>tables and figures</th>"
    return _scrolled(
        "Verdicts",
        f"<table class='counts'><caption>Verdicts</caption><thead><tr>{head}"
        f"<th scope='col'>claims</th></tr></thead><tbody>{rows}</tbody></table>",
    )


def _use(kind: str, title: str, found: Iterable[Finding], nothing: str, more: str = "") -> str:
    items = ""
    for each in found:
        cases = "".join(f"<li>{_text(case)}</li>" for case in each.cases)
        items += f"<li>{_text(each.text)}" + (f":<ul>{cases}</ul></li>" if cases else ".</li>")
    said = f"<ul>{items}</ul>" if items else f"<p>{_text(nothing)}</p>"
    return f"<div class='use {kind}'><h3>{_text(title)}</h3>{said}{more}</div>"


def _exhibit(exhibit: Mapping[str, Any], document: Mapping[str, Any], out: Path) -> str:
    figures = "".join(_figure(exhibit, out / name) for name in exhibit["figures"])
    notes = "".join(f"<p class='note'>{_note(note, document)}</p>" for note in exhibit["notes"])
    return (
        "<div class='sides'>"
        f"<div class='paper'><h3>The paper</h3><p>{_text(exhibit['paper'])}</p>"
        f"{_tally(exhibit)}</div>"
        f"<div class='here'><h3>Here</h3>{figures}{_table(exhibit)}</div></div>"
        f"{_claims(exhibit)}{notes}"
    )


def _figure(exhibit: Mapping[str, Any], path: Path) -> str:
    try:
        picture = base64.b64encode(path.read_bytes()).decode("ascii")
    except OSError as error:
        raise RequestError(
            f"{path} cannot be read ({error.strerror}); run python -m lab reproduce again"
        ) from error
    return (
        "<figure><div class='scroll' tabindex='0' role='region' "
        f"aria-label='{escape(exhibit['title'])}, as a plot'>"
        f"<img src='data:image/png;base64,{picture}' alt='{escape(_alternative(exhibit))}'>"
        "</div></figure>"
    )


def _alternative(exhibit: Mapping[str, Any]) -> str:
    """The alternative text of a figure; the numbers are in the table below it."""
    table = exhibit["table"]
    first, *columns = table["headings"]
    rows = list(dict.fromkeys(row[0] for row in table["rows"]))
    verdicts = _verdicts(exhibit)
    claims = f" The paper's claims on it: {verdicts}." if verdicts else ""
    return (
        f"Our plot for {exhibit['title'][:1].lower()}{exhibit['title'][1:]}. It belongs to the "
        f"table below, which has {'; '.join(columns)} for {first} {', '.join(rows)}.{claims}"
    )


def _table(exhibit: Mapping[str, Any]) -> str:
    table = exhibit["table"]
    head = "".join(
        f"<th scope='col'>{_text(name)}</th>" if name else "<td></td>" for name in table["headings"]
    )
    body = "".join(
        f"<tr><th scope='row'>{_text(row[0])}</th>"
        + "".join(f"<td>{_cell(value)}</td>" for value in row[1:])
        + "</tr>"
        for row in table["rows"]
    )
    return _scrolled(
        exhibit["title"],
        f"<table><caption>{_text(_short(exhibit))}, our result</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>",
    )


def _cell(value: str) -> str:
    """A table cell with text in brackets on its own line, which keeps wide tables narrow."""
    return re.sub(r" (\(.+\))$", r" <small>\1</small>", _text(value))


def _verdicts(exhibit: Mapping[str, Any]) -> str:
    counts = Counter(claim["verdict"] for claim in exhibit["claims"])
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in _MARKS if counts[verdict])


def _tally(exhibit: Mapping[str, Any]) -> str:
    """Counts of the verdicts on its claims, as the worst one says little if there are many."""
    if len(exhibit["claims"]) < 2:
        return ""
    return f"<p class='note'>{len(exhibit['claims'])} claims: {_verdicts(exhibit)}.</p>"


def _claims(exhibit: Mapping[str, Any]) -> str:
    if not exhibit["claims"]:
        return ""
    bodies = "".join(
        "<tbody><tr class='claim'><th scope='rowgroup' colspan='3'><div>"
        f"<span>{_text(claim['text'])} <small>{_text(claim['source'])}</small></span> "
        f"<span>{_badge(claim['verdict'])}{_behind(claim)}</span></div>{_reason(claim)}</th></tr>"
        + "".join(map(_comparison, claim["comparisons"]))
        + "".join(map(_difference, claim.get("differences", ())))
        + "</tbody>"
        for claim in exhibit["claims"]
    )
    title = "Claim by claim"
    return f"<h3>{title}</h3>" + _scrolled(
        f"{exhibit['title']}: {title.lower()}",
        f"<table class='claims'><caption>{_text(_short(exhibit))}: the paper's claims</caption>"
        "<thead><tr><th scope='col'>claim and verdict</th><th scope='col'>paper</th>"
        f"<th scope='col'>here</th></tr></thead>{bodies}</table>",
    )


def _behind(claim: Mapping[str, Any]) -> str:
    seeds = printed.claim_seeds(claim)
    return f" <small>{_text(seeds)}</small>" if seeds else ""


def _reason(claim: Mapping[str, Any]) -> str:
    why = claim.get("reason")
    return f"<p class='note'>{_text(why)}</p>" if why else ""


def _difference(difference: Mapping[str, Any]) -> str:
    return (
        f"<tr><th scope='row'>{_text(printed.pair(difference))}</th><td></td>"
        f"<td>{_cell(printed.difference(difference))}</td></tr>"
    )


def _comparison(comparison: Mapping[str, Any]) -> str:
    theirs, seeds = printed.papers(comparison), printed.seeds(comparison)
    number = _text(theirs) if theirs else "<span class='none'>no number</span>"
    behind = f" <small>({_text(seeds)})</small>" if seeds else ""
    return (
        f"<tr><th scope='row'>{_text(comparison['quantity'])}</th><td>{number}</td>"
        f"<td>{_text(printed.ours(comparison))}{behind}</td></tr>"
    )


def _made(document: Mapping[str, Any]) -> str:
    planned = " (planned)" if document.get("unfinished") else ""
    seeds = ", ".join(map(str, document["seeds"])) + planned
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    facts = {
        "command": f"`{document['command']}`",
        "scale": f"{document['scale']}. {document['shortened']}",
        "seeds": seeds,
        "versions": versions,
        "engine": document.get("engine", ""),
        "files": "Beside this page, `results.json` has all of it as data, `tables/` every table "
        "as CSV and Markdown, `figures/` every figure as PNG and PDF.",
    }
    rows = "".join(f"<dt>{_text(k)}</dt><dd>{_text(v)}</dd>" for k, v in facts.items() if v)
    return f"<dl>{rows}</dl>"


def _heading(exhibit: Mapping[str, Any]) -> str:
    basis = printed.rests_on(exhibit)
    small = f" <small>{_text(basis)}</small>" if basis else ""
    return f"{_text(exhibit['title'])} {_badge(exhibit['verdict'])}{small}".rstrip()


def _link(exhibit: Mapping[str, Any]) -> str:
    """The link in the contents: the verdict's sign (with a text for screen readers) and number."""
    name = _text(_short(exhibit))
    if exhibit["verdict"] not in _MARKS:
        return f"<span class='sign'></span>{name}"
    kind, sign = _MARKS[Verdict(exhibit["verdict"])]
    return (
        f"<span class='sign {kind}' title='{escape(exhibit['verdict'])}' aria-hidden='true'>{sign}"
        f"</span>{name}<span class='heard'>: {_text(exhibit['verdict'])}</span>"
    )


def _short(exhibit: Mapping[str, Any]) -> str:
    """Its number without its subject."""
    name: str = exhibit["title"].partition(":")[0]
    return name


def _badge(verdict: str) -> str:
    if verdict not in _MARKS:
        return ""
    kind, sign = _MARKS[Verdict(verdict)]
    return f"<span class='badge {kind}'><span aria-hidden='true'>{sign}</span> {verdict}</span>"


def _note(note: str, document: Mapping[str, Any]) -> str:
    """A note; the sentence on the scale becomes a link, as it is at the top of the page."""
    if note == document["shortened"] and _is_shortened(document):
        return "These runs are shortened; <a href='#result'>see above for how</a>."
    return _text(note)


def _unfinished(document: Mapping[str, Any]) -> str:
    lacking = document.get("unfinished")
    if not lacking:
        return ""
    return (
        f"<p class='shortened'><strong>Not all runs are finished.</strong> {_text(lacking)} "
        f"A verdict rests on the seeds that are finished and says how many these are.</p>"
        f"{_missing(document)}"
    )


def _missing(document: Mapping[str, Any]) -> str:
    """A collapsed list of every run that lacks rounds."""
    runs = document.get("missing")
    if not runs:
        return ""
    items = "".join(
        f"<li>{_text(each['run'])}: {each['rounds_done']} of {each['rounds']} rounds, needed for "
        f"{_text(', '.join(each['needed_for']))}</li>"
        for each in runs
    )
    return f"<details><summary>Unfinished runs: {len(runs)}</summary><ul>{items}</ul></details>"


def _is_shortened(document: Mapping[str, Any]) -> bool:
    shortened: str = document["shortened"]
    return shortened.startswith(_SHORTENED)


def _scrolled(label: str, html: str) -> str:
    return (
        f"<div class='scroll' tabindex='0' role='region' aria-label='{escape(label)}'>{html}</div>"
    )


def _text(text: str) -> str:
    """Escaped, with backticks as code and without line breaks in `1 ± 1` and `α = 1`."""
    together = re.sub(r" (±|(?<=α )=) ", r"&nbsp;\1&nbsp;", escape(text))
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", together)
