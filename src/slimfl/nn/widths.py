"""What makes a layer slimmable, the active width, and the channels of a width.

The active width is a context variable, not an argument, so that a network's `forward(x)` stays
ordinary PyTorch and threads can use different widths at once.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, runtime_checkable

_active: ContextVar[float] = ContextVar("width", default=1.0)


@runtime_checkable
class Slimmable(Protocol):
    """What a layer must provide so that its parameters can be cut into segments."""

    def active_shapes(self, width: float) -> Mapping[str, tuple[int, ...]]:
        """For each of the layer's own parameters, the leading block that `width` uses."""


@contextmanager
def at_width(width: float) -> Iterator[None]:
    """Inside this context, slimmable layers use the leading `width` share of their channels."""
    token = _active.set(width)
    try:
        yield
    finally:
        _active.reset(token)


def active_width() -> float:
    """The width of the surrounding `at_width`; 1.0 outside."""
    return _active.get()


def channels_at(total: int, width: float) -> int:
    """The number of channels of a width: its share of `total`, rounded up.

    >>> channels_at(32, 0.5), channels_at(10, 0.25), channels_at(3, 1.0)
    (16, 3, 3)
    """
    return min(total, max(1, math.ceil(total * width - 1e-9)))
