"""HeteroFL and SHeteroFL: every device trains the leading block that it can hold.

HeteroFL: E. Diao, J. Ding, V. Tarokh, "HeteroFL: computation and communication efficient federated
learning for heterogeneous clients", ICLR 2021. SHeteroFL: the rival in J. Hong et al., "Efficient
split-mix federated learning", ICLR 2022. In pseudo-code::

    a device with maximum width r: trains the leading r of all channels, sends that block
    server: every parameter is the plain mean over the devices that hold it; nobody: unchanged

HeteroFL's static batch normalisation has nothing to act on in a network without it. Its scaler (a
layer's output over r, in training only) is left out too: without batch normalisation nothing undoes
it at test time. Its masking of absent classes is left out as well, so that all methods minimise the
same loss.
"""

from dataclasses import dataclass

from slimfl.devices import Device
from slimfl.methods.arrivals import Arrivals
from slimfl.methods.method import Assignment, Random, State
from slimfl.nn import Vector


@dataclass(frozen=True)
class HeteroFL:
    """A device trains its widest width alone and sends it whole, with all the power."""

    widths: tuple[float, ...]
    missing: str = "keep"
    name: str = "heterofl"

    def evaluates(self) -> tuple[int, ...]:
        """All widths."""
        return tuple(range(len(self.widths)))

    def assign(self, device: Device, round: int, random: Random) -> Assignment:
        """One width, one message that carries all its segments."""
        block = tuple(range(device.max_width + 1))
        return Assignment((device.max_width,), messages=(block,))

    def initial_state(self, model: Vector) -> State:
        """No state but the model."""
        return {}

    def aggregate(self, model: Vector, state: State, arrivals: Arrivals) -> tuple[Vector, State]:
        """The mean of every parameter over the devices that delivered it."""
        return arrivals.mean(self.missing), state


@dataclass(frozen=True)
class SHeteroFL(HeteroFL):
    """A device trains all widths that it can, as SlimFL does, and sends them as one message.

    So it differs from SlimFL only in superposition coding.
    """

    name: str = "sheterofl"

    def assign(self, device: Device, round: int, random: Random) -> Assignment:
        """All widths, one message."""
        block = tuple(range(device.max_width + 1))
        return Assignment(block, messages=(block,))
