"""NeFL: H. Kang et al., "NeFL: nested model scaling for federated learning with system
heterogeneous clients", arXiv:2308.07761. Scaling by width (NeFL-W).

In pseudo-code::

    a device of class c draws a width from c - 2 to c + 2, here no wider than it can hold;
        it trains that width alone and sends that block
    server: a consistent parameter (weights) is the mean over the devices whose block holds it;
            an inconsistent one (normalisation) is the mean over the devices of that very width;
            what nobody delivered stays

The step sizes of NeFL's deep variant have no place in a network without residual blocks. Run it on
`us-mobilenet`, whose widths have normalisation of their own.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from slimfl.devices import Device
from slimfl.errors import RequestError
from slimfl.methods import Arrival, Merge, Random, RunningMean, State, Work
from slimfl.nn import SlimBatchNorm2d, Vector, build, segments

Places = NDArray[np.int64]


@dataclass(frozen=True)
class NeFL:
    """Every device trains a width near its own; what a width has of its own is nobody else's."""

    widths: tuple[float, ...]
    network: str = "us-mobilenet"
    in_channels: int = 1
    classes: int = 10
    reach: int = 2
    """How far from a device's own class it may draw."""
    name: str = "nefl"

    def evaluates(self) -> tuple[int, ...]:
        """All widths."""
        return tuple(range(len(self.widths)))

    def assign(self, device: Device, round: int, random: Random) -> Work:
        """One width, drawn for this device and round, in one message."""
        narrowest = max(0, device.max_width - self.reach)
        width = int(random().integers(narrowest, device.max_width + 1))
        return Work((width,), messages=(tuple(range(width + 1)),))

    def start(self, model: Vector) -> State:
        """The server remembers nothing but the model."""
        if len(self.voices[-1][0]) != len(model):
            raise RequestError(
                f"nefl knows a network of {len(self.voices[-1][0])} parameters and the model has "
                f"{len(model)}: give network, in_channels and classes in method_options"
            )
        return {}

    def merge(self, mean: RunningMean, state: State) -> Merge:
        """The mean of every parameter over the devices that may speak for it."""
        return NeFLMerge(mean, state, self.voices)

    @cached_property
    def voices(self) -> list[tuple[Places, Places]]:
        """For every width its block, and that without the normalisation of other widths."""
        given = {"in_channels": self.in_channels, "classes": self.classes, "widths": self.widths}
        network = build(self.network, {}, **given)
        marks = []  # the width that a parameter belongs to alone, -1 where all share it
        for module in network.modules():
            for name, parameter in module.named_parameters(recurse=False):
                own = isinstance(module, SlimBatchNorm2d)  # its names end in the width's number
                mark = int(name.lstrip("abcdefghijklmnopqrstuvwxyz")) if own else -1
                marks.append(np.full(parameter.numel(), mark))
        holder, cut = np.concatenate(marks), segments(network, self.widths)
        blocks = [np.flatnonzero(cut.mask(width)) for width in self.widths]
        return [(b, b[np.isin(holder[b], (-1, width))]) for width, b in enumerate(blocks)]


class NeFLMerge(Merge):
    """Takes of every block what its width may speak for."""

    def __init__(
        self, mean: RunningMean, state: State, voices: list[tuple[Places, Places]]
    ) -> None:
        super().__init__(mean, state)
        self.voices = {len(block): own for block, own in voices}

    def add(self, arrival: Arrival) -> None:
        """Add the part of a block that is not of other widths."""
        count = len(self.mean.last[arrival.where])
        if count not in self.voices:  # what arrived earlier is mixed from several widths
            raise RequestError('nefl merges whole blocks: set federation.absent = "skip"')
        self.mean.add(arrival.parameters, self.voices[count], arrival.weight)
