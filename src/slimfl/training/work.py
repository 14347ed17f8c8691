"""What one device trains and sends in one round, and what it keeps for the next."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slimfl.errors import RequestError
from slimfl.experiment import TrainingSection
from slimfl.experiment.naming import NO_OPTIONS, Options, as_options
from slimfl.nn import ChannelOrder


@dataclass(frozen=True)
class Work:
    """Plain values, which a method gives to a device and which can be sent to other processes."""

    widths: tuple[int, ...]
    """Indices of the widths to train, ascending; they need not contain the full one."""
    messages: tuple[tuple[int, ...], ...] = ()
    """What to send, superposed: for each message, the segments that it carries."""
    step: str | None = None
    """Name of the local step; None is the configured one, or plain training for one width."""
    options: Options = NO_OPTIONS
    """Options of the step, if the method names it: a dictionary, which is kept as JSON text."""
    visit: str = "all"
    """The widths that take part in a step: `all`; `one`, drawn per batch; `widest-and-one`;
    `sandwich` (narrowest, widest and some in between)."""
    weights: tuple[float, ...] | None = None
    """Loss weight of every width of the network; None for the configured ones."""
    channels: ChannelOrder | None = None
    """The order of the channels, for a device that trains others than the leading ones."""
    effort: float = 1.0
    """The part of the configured local steps that the device takes, at least one step."""

    def __post_init__(self) -> None:
        if isinstance(self.options, Mapping):
            object.__setattr__(self, "options", as_options(self.options))
        if not 0 < self.effort <= 1:
            raise RequestError(
                f"the effort of a device is {self.effort}: give a number above 0, at most 1"
            )

    @property
    def segments(self) -> tuple[int, ...]:
        """The segments of all messages."""
        return tuple(segment for message in self.messages for segment in message)

    def images_trained_on(self, seen: NDArray[np.int64]) -> int:
        """Number of images, given how many each width saw; one counts once, at however many widths.

        The widest takes part in every step, except where one width is drawn per batch.
        """
        return int(seen.sum() if self.visit == "one" else seen.max())


#: Arrays under PyTorch's own names.
OptimiserState = dict[str, NDArray[np.float32]]


def state_shapes(section: TrainingSection, parameters: int) -> dict[str, tuple[int, ...]]:
    """The arrays of a device's state after its first step, for a model of that size."""
    if section.optimiser_state == "fresh":
        return {}
    if section.optimiser == "adam":
        return {"step": (), "exp_avg": (parameters,), "exp_avg_sq": (parameters,)}
    return {"momentum_buffer": (parameters,)} if section.momentum else {}
