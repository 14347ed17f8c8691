"""What the studies found, from docs/results/studies/NAME/results.json."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Sentences on regimes that the README leaves to the page of studies.
BEYOND = re.compile("energy|advice")


def texts(results: Path) -> dict[str, str]:
    """One fragment per study whose results are committed.

    Args:
        results: The folder with one folder per study.
    """
    found = sorted(results.glob("*/results.json"))
    documents = [json.loads(path.read_text(encoding="utf-8")) for path in found]
    made = {f"study {each['study']}": "\n".join(shown(each)) for each in documents}
    for each in documents:
        if each["study"] == "regimes":
            equal_rounds = [said for said in each["answer"] if not BEYOND.search(said)]
            made["regimes in short"] = "\n".join(f"* {said}" for said in equal_rounds)
    return made


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
