"""The scales of the reproduction, from the code that applies them."""

from __future__ import annotations

from lab.reproduction.cells.scale import SCALES


def text() -> str:
    """One line per scale."""
    scales = [f"* `{name}`. {scale.shortened}" for name, scale in SCALES.items()]
    return "\n".join(scales)
