"""How long devices download, train and send, in seconds.

t = download bits / downlink rate + 3 * images * multiply-adds / speed + airtime
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: A training step is a forward pass, and a backward pass of about twice the work.
TRAINING_PASSES = 3


def training_work(images: NDArray[np.int64], multiply_adds: list[int]) -> Floats:
    """Multiply-adds of local training, given the number of images [device, width]."""
    per_width = np.asarray(multiply_adds, np.float64)
    return np.asarray(TRAINING_PASSES * (images @ per_width))


@dataclass(frozen=True, eq=False)
class WorkTimes:
    """The duration of the three parts of every device's task."""

    download_s: Floats
    training_s: Floats
    airtime_s: Floats

    @property
    def trained_s(self) -> Floats:
        """When training ends, since the task began."""
        return np.asarray(self.download_s + self.training_s)

    @property
    def finished_s(self) -> Floats:
        """When the upload ends, since the task began."""
        return np.asarray(self.trained_s + self.airtime_s)

    def trained_share(self, end_s: float | Floats) -> Floats:
        """The share of its training that each device has done by `end_s`."""
        return _share(end_s - self.download_s, self.training_s)

    def sent_share(self, end_s: float | Floats) -> Floats:
        """The share of its upload that each device has sent by `end_s`."""
        return _share(end_s - self.trained_s, self.airtime_s)

    def take(self, rows: Any) -> WorkTimes:
        """The rows of some devices."""
        return WorkTimes(self.download_s[rows], self.training_s[rows], self.airtime_s[rows])


def _share(elapsed_s: Floats, of_s: Floats) -> Floats:
    """The finished share; a part that takes no time is finished once it is reached."""
    done = np.where(elapsed_s >= of_s, 1.0, 0.0)
    running = (elapsed_s > 0) & (elapsed_s < of_s)
    return np.divide(elapsed_s, of_s, out=done, where=running)
