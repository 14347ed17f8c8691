"""What the studies found, from docs/results/studies/NAME/results.json."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from verdicts import table_of


def texts(results: Path) -> dict[str, str]:
    """One fragment per study whose results are committed.

    Args:
        results: The folder with one folder per study.
    """
    found = sorted(results.glob("*/results.json"))
    documents = [json.loads(path.read_text(encoding="utf-8")) for path in found]
    made = {}
    for document in documents:
        (study,) = document["questions"]
        made[f"study {study['name']}"] = "\n".join(shown(study, document))
        if study["name"] == "regimes":
            equal_rounds = [said for said in study["sentences"] if "energy" not in said]
            made["regimes in short"] = "\n".join(f"* {said}" for said in equal_rounds)
    return made


def shown(study: dict[str, Any], document: dict[str, Any]) -> Iterator[str]:
    """The answer, the pictures, the tables, and how it was made."""
    yield f"**{study['asks']}**"
    yield ""
    yield from (f"* {sentence}" for sentence in study["sentences"])
    folder = f"results/studies/{study['name']}"
    for picture in study["pictures"]:
        yield f"\n![{picture['caption']}]({folder}/{picture['file']})"
        yield f"\n{picture['caption']}"
    for table in study["tables"]:
        if table["rows"]:
            yield f"\n{table['title']}\n"
            yield table_of(table).strip()
    finished = document["runs"] - len(document["missing"])
    yield (
        f"\nMade by `{document['command']}`: {finished} of {document['runs']} runs are finished, "
        f"{document['processor_s'] / 3600:.1f} hours of one core. {document['what_is_run']} "
        f"± behind an accuracy is the deviation over seeds, behind a difference Student's 95% "
        f"interval over paired seeds. [All numbers]({folder}/results.json)."
    )
