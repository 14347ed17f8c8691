"""The configuration reference as Markdown; `slimfl keys` shows the same."""

from __future__ import annotations

import json
from typing import Any

from slimfl.experiment.reference import TOP, KeySection, reference


def text() -> str:
    """The reference; a key without a meaning is an error."""
    lines: list[str] = []
    for section in reference():
        lines += [f"## {_title(section)}", "", section.meaning, ""]
        lines += ["| key | type | default | meaning |", "|---|---|---|---|"]
        for key in section.keys:
            cells = (f"`{key.name}`", key.values, _default(key.default), key.meaning)
            lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _title(section: KeySection) -> str:
    if section.name == TOP:
        return "The experiment"
    return f"`[[{section.name}]]`" if "." in section.name else f"`[{section.name}]`"


def _default(value: Any) -> str:
    return "absent" if value is None else f"`{json.dumps(value)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
