"""What the studies found, from docs/results/studies/NAME/results.json."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from slimfl.reproduction.judging.paired import Difference, difference
from slimfl.studies import rivals
from slimfl.studies.standing import gap_words, is_above_zero

#: The population and the study that the README begins with.
POPULATION, HEADLINE = "cell", "rivals"


def texts(results: Path) -> dict[str, str]:
    """One fragment per study whose results are committed.

    Args:
        results: The folder with one folder per study.
    """
    found = sorted(results.glob("*/results.json"))
    documents = [json.loads(path.read_text(encoding="utf-8")) for path in found]
    made = {f"study {each['study']}": "\n".join(shown(each)) for each in documents}
    for each in documents:
        if each["study"] == HEADLINE:
            made["headline"] = headline(each)
    return made


def headline(document: dict[str, Any]) -> str:
    """The first picture of the README, one sentence for SlimFL and one against it."""
    rows = {each["method"]: each for each in document["data"][POPULATION]}
    slim = rows[rivals.SLIMFL.name]
    full, half = rows["Vanilla FL-1.0x"], rows["Vanilla FL-0.5x"]
    ahead = _gap(slim, full, "accuracy", "1.0x")
    fairer = _gap(slim, full, "least_heard", "1.0x")
    lost = _gap(half, slim, "accuracy", "0.5x")
    picture = f"docs/results/studies/{HEADLINE}/figures/{POPULATION}-fairness.png"
    return (
        f"![Accuracy of the full width, for all and for the devices heard least, by method]"
        f"({picture})\n\n"
        "*Twenty devices spread over a cell, one channel, one model for both widths. Against "
        f"Vanilla FL-1.0x, SlimFL's full width is {_said(ahead)} on all test images and "
        f"{_said(fairer)} on the data of the devices heard least. Vanilla FL-0.5x is "
        f"{_said(lost)} at 0.5x for {half['energy_j'] / slim['energy_j']:.0%} of the energy: if "
        f"0.5x is all you need, use that. `{document['command']}`; "
        f"[all methods, energy and time](docs/studies.md).*"
    )


def _gap(one: dict[str, Any], other: dict[str, Any], what: str, width: str) -> Difference:
    found = difference(one["method"], other["method"], one[what][width], other[what][width])
    assert found is not None
    return found


def _said(gap: Difference) -> str:
    """Ahead, behind or level, with the interval."""
    amount = gap_words(gap).lstrip("+-")
    if is_above_zero(gap):
        return f"{amount} points ahead"
    behind = gap.half_width is not None and gap.mean + gap.half_width < 0
    return f"{amount} points behind" if behind else f"level ({gap_words(gap)} points)"


def shown(document: dict[str, Any]) -> Iterator[str]:
    """The answer, the pictures, the tables, and how it was made."""
    yield f"**{document['question']}**"
    yield ""
    yield from (f"* {sentence}" for sentence in document["answer"])
    folder = f"results/studies/{document['study']}"
    for picture in document["pictures"]:
        yield f"\n![{picture['caption']}]({folder}/{picture['file']})"
        yield f"\n{picture['caption']}"
    for table in document["tables"]:
        if table["rows"]:
            yield f"\n{table['title']}\n"
            yield f"| {' | '.join(table['headings'])} |"
            yield f"| {' | '.join('---' for _ in table['headings'])} |"
            yield from (f"| {' | '.join(row)} |" for row in table["rows"])
    finished = document["runs"] - len(document["lacking"])
    yield (
        f"\nMade by `{document['command']}`: {finished} of {document['runs']} runs are finished, "
        f"{document['processor_s'] / 3600:.1f} hours of one core. {document['what_is_run']} "
        f"± behind an accuracy is the deviation over seeds, behind a difference Student's 95% "
        f"interval over paired seeds. [All numbers]({folder}/results.json)."
    )
