"""The optimiser states that devices keep between rounds, as plain arrays."""

import numpy as np
from numpy.typing import NDArray

from slimfl.training import OptimiserState


class DeviceStates:
    """The states of the devices that have trained; keeps nothing when `keep` is false."""

    def __init__(self, keep: bool) -> None:
        self.keep = keep
        self._states: dict[int, OptimiserState] = {}

    def get(self, device: int) -> OptimiserState | None:
        """A device's state, None before it first trained."""
        return self._states.get(device)

    def put(self, device: int, state: OptimiserState) -> None:
        """Keep a device's state for its next round."""
        if self.keep:
            self._states[device] = state

    def export(self) -> dict[str, NDArray[np.float32]]:
        """All states under names such as `17/exp_avg`."""
        return {
            f"{device}/{name}": value
            for device, state in sorted(self._states.items())
            for name, value in state.items()
        }

    def restore(self, arrays: dict[str, NDArray[np.float32]]) -> None:
        """Take back what `export` gave."""
        self._states.clear()
        for key, value in arrays.items():
            device, _, name = key.partition("/")
            self._states.setdefault(int(device), {})[name] = value
