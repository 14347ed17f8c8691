"""The scales of the reproduction, from the code that applies them."""

from __future__ import annotations

from lab.scale import names, scale


def text() -> str:
    """One line per scale."""
    return "\n".join(f"* `{name}`. {scale(name).words}" for name in names("reproduce"))
