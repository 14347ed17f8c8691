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
from typing import ClassVar

from slimfl.devices import Device
from slimfl.methods.method import Random
from slimfl.methods.slimfl import SlimFL
from slimfl.training import Work


@dataclass(frozen=True)
class HeteroFL(SlimFL):
    """A device trains its widest width alone and sends it whole, with all the power."""

    name: str = "heterofl"
    title: ClassVar[str] = "HeteroFL"

    def assign(self, device: Device, round: int, random: Random) -> Work | None:
        """One width, one message that carries all its segments."""
        block = tuple(range(device.max_width + 1))
        return Work((device.max_width,), messages=(block,))


@dataclass(frozen=True)
class SHeteroFL(HeteroFL):
    """A device trains all widths that it can, as SlimFL does, and sends them as one message.

    So it differs from SlimFL only in superposition coding.
    """

    name: str = "sheterofl"
    title: ClassVar[str] = "SHeteroFL"

    def assign(self, device: Device, round: int, random: Random) -> Work | None:
        """All widths, one message."""
        block = tuple(range(device.max_width + 1))
        return Work(block, messages=(block,))
