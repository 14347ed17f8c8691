"""What makes a layer slimmable, the active width, and the segments of nested widths.

The active width is a context variable, not an argument, so that a network's `forward(x)` stays
ordinary PyTorch and threads can use different widths at once.

For widths w_1 < ... < w_S, segment i contains the parameters of width i that width i-1 does not
have. The segments are disjoint and cover all parameters; width i is the union of segments 1 to i.
For the paper's S = 2 they are LH and RH, with masks Xi_1 and Xi_2 - Xi_1.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import nn

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


@dataclass(frozen=True, eq=False)
class Segments:
    """For every flat parameter, the (zero-based) number of its segment."""

    segment_of: NDArray[np.uint8]
    widths: tuple[float, ...]

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of parameters per segment."""
        return np.bincount(self.segment_of, minlength=len(self.widths))

    @cached_property
    def positions(self) -> tuple[NDArray[np.int64], ...]:
        """Positions of each segment's parameters in the flat vector."""
        return tuple(np.flatnonzero(self.segment_of == i) for i in range(len(self.widths)))

    def mask(self, width: float) -> NDArray[np.bool_]:
        """Xi of a width: the parameters that it uses."""
        return self.segment_of <= self.widths.index(width)


def segments(network: "nn.Module", widths: tuple[float, ...]) -> Segments:
    """Cut a network's parameters by the widths; those that are not slimmable are in segment 1."""
    if len(widths) > 255:
        raise ValueError("at most 255 widths")
    numbers: dict[int, NDArray[np.uint8]] = {}
    for module in network.modules():
        if not isinstance(module, Slimmable):
            continue
        own = dict(module.named_parameters(recurse=False))
        for index in reversed(range(len(widths))):
            for name, shape in module.active_shapes(widths[index]).items():
                parameter = own[name]
                block = numbers.setdefault(
                    id(parameter), np.full(tuple(parameter.shape), len(widths) - 1, np.uint8)
                )
                block[tuple(slice(0, size) for size in shape)] = index
    parts = [
        numbers.get(id(p), np.zeros(tuple(p.shape), np.uint8)).reshape(-1)
        for p in network.parameters()
    ]
    return Segments(np.concatenate(parts), widths)
