"""What a method has one device train, before it becomes a schedule of batches."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slimfl.errors import RequestError
from slimfl.experiment.naming import NO_OPTIONS, Options
from slimfl.nn import ChannelOrder


@dataclass(frozen=True)
class LocalWork:
    """Plain values that can be sent to other processes."""

    widths: tuple[int, ...]
    """Indices of the widths, ascending; they need not contain the full one."""
    step: str | None = None
    """Name of the local step; None is the configured one, or plain training for one width."""
    options: Options = NO_OPTIONS
    """Options of the step, if the method names it."""
    visit: str = "all"
    """The widths that take part in a step: `all`; `one`, drawn per batch; `widest-and-one`;
    `sandwich` (narrowest, widest and some in between)."""
    weights: tuple[float, ...] | None = None
    """Loss weight of every width of the network, if the method has its own."""
    channels: ChannelOrder | None = None
    """The order of the channels, if others than the leading ones are trained."""
    effort: float = 1.0
    """The part of the configured local steps that the device takes, at least one step."""

    def __post_init__(self) -> None:
        if not 0 < self.effort <= 1:
            raise RequestError(
                f"the effort of a device is {self.effort}: give a number above 0, at most 1"
            )

    def images_trained_on(self, seen: NDArray[np.int64]) -> int:
        """Number of images, given how many each width saw; one counts once, at however many widths.

        The widest takes part in every step, except where one width is drawn per batch.
        """
        return int(seen.sum() if self.visit == "one" else seen.max())
