"""What the studies found, from docs/results/studies/NAME/results.json."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from slimfl.reproduction.judging.paired import Difference, difference
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
        if each["study"] == "regimes":
            made["regimes in short"] = "\n".join(f"* {said}" for said in each["answer"])
    return made


def headline(document: dict[str, Any]) -> str:
    """The first picture of the README: where SlimFL stands, and where a rival is better."""
    rows = {each["method"]: each for each in document["data"][POPULATION]}
    full, half = rows["Vanilla FL-1.0x"], rows["Vanilla FL-0.5x"]
    slim, turns = rows["SlimFL"], rows["SlimFL (segments in turn)"]
    seeds = min(len(each["accuracy"]["1.0x"]) for each in (slim, turns, full))
    picture = f"docs/results/studies/{HEADLINE}/figures/{POPULATION}-lead.png"
    return (
        f"![Full-width accuracy of every method over Vanilla FL-1.0x, with 95% intervals]"
        f"({picture})\n\n"
        f"*Twenty devices spread over a cell, {seeds} seeds. Sending a model in segments lets far "
        "devices deliver a part of it. Against Vanilla FL-1.0x, SlimFL's full width is "
        f"{_said(_gap(turns, full, '1.0x'))} with its segments sent in turn, and on the data of "
        f"the farthest quarter of the devices {_said(_gap(turns, full, '1.0x', 'far'))}. With both "
        "segments superposed in one transmission, which takes "
        f"{slim['clock_s'] / turns['clock_s']:.0%} of that airtime, it is "
        f"{_said(_gap(slim, full, '1.0x'))}. At 0.5x, Vanilla FL-0.5x is "
        f"{_said(_gap(half, slim, '0.5x'))} against SlimFL for "
        f"{half['energy_j'] / slim['energy_j']:.0%} of the energy: if you need only 0.5x, use it. "
        f"Made by `slimfl study {HEADLINE} --scale standard`; [all methods, energy and "
        "time](docs/studies.md).*"
    )


def _gap(
    one: dict[str, Any], other: dict[str, Any], width: str, measure: str = "accuracy"
) -> Difference:
    first, second = one[measure][width], other[measure][width]
    found = difference(one["method"], other["method"], first, second)
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
