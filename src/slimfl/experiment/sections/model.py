"""`[model]`: the network and its widths."""

from __future__ import annotations

import itertools
from typing import Any, Literal

from pydantic import Field, field_validator

from slimfl.experiment.sections.section import Part, Section

#: Maximum number of widths of a network: one byte per parameter stores its segment.
MOST_WIDTHS = 32


class ModelSection(Section):
    """The network and its widths."""

    name: Part = "ul-mobilenet"
    """`ul-mobilenet`; `us-mobilenet`, the same with batch normalisation; `resnet`, for colour
    images; `mlp`; `split-mix`, for the method of that name; or `package.module:Name`, a class or
    function that makes a network of slimmable layers; in Python also such a network itself, which
    the run folder calls `own`."""
    widths: tuple[float, ...] = (0.5, 1.0)
    """The nested widths, ascending, ending with 1.0."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the network's factory."""
    initialisation: Literal["he", "he-fan-out", "xavier", "torch"] = "he"
    """How the weights are initialised."""

    @field_validator("widths")
    @classmethod
    def _nested(cls, widths: tuple[float, ...]) -> tuple[float, ...]:
        if not widths or any(b <= a for a, b in itertools.pairwise((0.0, *widths))):
            raise ValueError("must be positive and ascending, for example [0.5, 1.0]")
        if widths[-1] != 1.0:
            raise ValueError("must end with 1.0, the full network")
        if widths[0] < 1e-3 or len(widths) > MOST_WIDTHS:
            raise ValueError(f"must be at most {MOST_WIDTHS} widths, each at least 0.001")
        return widths
