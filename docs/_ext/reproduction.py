"""The rule of verdicts and the scales of the reproduction, from the code that applies them."""

from __future__ import annotations

from pathlib import Path

from slimfl.reproduction.cells.scale import SCALES
from slimfl.reproduction.judging.verdict import RULE


def write(folder: Path) -> None:
    """Write the snippets that docs/reproduction.md includes."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "verdict-rule.md").write_text(RULE + "\n")
    scales = [f"* `{name}`. {scale.shortened}" for name, scale in SCALES.items()]
    (folder / "scales.md").write_text("\n".join(scales) + "\n")
