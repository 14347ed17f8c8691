"""FjORD: S. Horvath et al., "FjORD: fair and accurate federated learning under heterogeneous
targets with ordered dropout", NeurIPS 2021.

In pseudo-code::

    a device with maximum width p_max, for every batch:
        draw p uniformly from the widths up to p_max
        without distillation: one step on CE(net_p(x), y)
        with distillation:    one step on CE(net_pmax(x), y) + CE(net_p(x), softmax(net_pmax(x)))
    it sends the p_max block; server: every parameter is the mean over the devices that hold it

The reference averages by samples: set federation.average = "samples" for that.
"""

from dataclasses import dataclass
from typing import ClassVar

from slimfl.devices import Device
from slimfl.methods.heterofl import HeteroFL
from slimfl.methods.method import Random
from slimfl.training import Work


@dataclass(frozen=True)
class FjORD(HeteroFL):
    """Ordered dropout: the width is drawn for every batch."""

    name: str = "fjord"
    title: ClassVar[str] = "FjORD"

    def assign(self, device: Device, round: int, random: Random) -> Work:
        """Train any width up to the device's, then send the whole block."""
        block = tuple(range(device.max_width + 1))
        return Work(
            block,
            messages=(block,),
            step="slimtrain-accumulate",  # with one width per batch, this is the loss of that width
            visit="one",
            weights=(1.0,) * len(self.widths),
        )


@dataclass(frozen=True)
class FjORDWithDistillation(HeteroFL):
    """The device's widest width learns from labels and teaches the one that was drawn."""

    name: str = "fjord-kd"
    title: ClassVar[str] = "FjORD with distillation"

    def assign(self, device: Device, round: int, random: Random) -> Work:
        """The widest and one other width, or only the widest if it was drawn."""
        block = tuple(range(device.max_width + 1))
        return Work(
            block,
            messages=(block,),
            step="sustrain",
            visit="widest-and-one",
            weights=(1.0,) * len(self.widths),
        )
