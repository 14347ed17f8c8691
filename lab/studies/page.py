"""A study as one HTML page that needs nothing else."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from slimfl.report.pages.page_shell import page_shell, section


def page(document: Mapping[str, Any], out: Path) -> str:
    """The page of a study; its pictures are read from the folder."""
    answer = "".join(f"<li>{_text(sentence)}</li>" for sentence in document["answer"])
    pictures = "".join(_picture(each, out) for each in document["pictures"])
    tables = "".join(_table(each) for each in document["tables"])
    sections = {
        "answer": ("The answer", f"{_lacking(document)}<ul>{answer}</ul>"),
        "pictures": ("Pictures", pictures),
        "tables": ("Tables", tables),
        "made": ("How this was made", _made(document)),
    }
    shown = {key: value for key, value in sections.items() if value[1]}
    return page_shell(
        kind="SlimFL study",
        title=document["title"],
        subtitle=document["question"],
        contents=[(key, name) for key, (name, _) in shown.items()],
        main="".join(section(key, name, html) for key, (name, html) in shown.items()),
        css="figure img { max-width: 100%; height: auto; background: white }",
    )


def _lacking(document: Mapping[str, Any]) -> str:
    count = len(document["lacking"])
    if not count:
        return ""
    names = "".join(f"<li>{_text(name)}</li>" for name in document["lacking"])
    return (
        f"<p class='shortened'><strong>{count} of {document['runs']} runs are not finished."
        "</strong> The tables say how many seeds each row has.</p>"
        f"<details><summary>Which</summary><ul>{names}</ul></details>"
    )


def _picture(picture: Mapping[str, Any], out: Path) -> str:
    encoded = base64.b64encode((out / picture["file"]).read_bytes()).decode("ascii")
    caption = _text(picture["caption"])
    return (
        "<figure><div class='scroll' tabindex='0' role='region' "
        f"aria-label='{escape(picture['caption'])}'>"
        f"<img src='data:image/png;base64,{encoded}' alt='{escape(picture['caption'])}'></div>"
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _table(table: Mapping[str, Any]) -> str:
    head = "".join(f"<th scope='col'>{_text(name)}</th>" for name in table["headings"])
    body = "".join(
        f"<tr><th scope='row'>{_text(row[0])}</th>"
        + "".join(f"<td>{_text(value)}</td>" for value in row[1:])
        + "</tr>"
        for row in table["rows"]
    )
    return (
        f"<div class='scroll' tabindex='0' role='region' aria-label='{escape(table['title'])}'>"
        f"<table><caption>{_text(table['title'])}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _made(document: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    facts = {
        "command": f"`{document['command']}`",
        "runs": document["what_is_run"],
        "cost": f"{document['runs']} runs, {document['processor_s'] / 3600:.1f} hours of one core",
        "intervals": "± behind a difference is Student's 95% interval over paired seeds; two "
        "methods are not told apart when it contains 0, or when there is one seed. That does not "
        "make them alike.",
        "versions": f"{versions}; {document['engine']}",
        "files": "Beside this page, `results.json` has all of it as data, `tables/` every table "
        "as CSV and Markdown, `figures/` every picture as PNG and PDF.",
    }
    return (
        "<dl>" + "".join(f"<dt>{key}</dt><dd>{_text(v)}</dd>" for key, v in facts.items()) + "</dl>"
    )


def _text(text: str) -> str:
    """Escaped, with what stands between backticks set as code."""
    together = escape(text).replace(" ± ", "&nbsp;±&nbsp;")
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", together)
