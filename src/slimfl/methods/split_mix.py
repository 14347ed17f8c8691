"""Split-Mix: J. Hong et al., "Efficient split-mix federated learning for on-demand and in-situ
customization", ICLR 2022.

In pseudo-code::

    the network is B narrow base networks that share nothing (model.name = "split-mix")
    a device that can hold b of them trains b base networks per round: one step on the sum of
        their losses; it sends those
    server: every base network is the mean over the devices that trained it
    a width of b/B at test time: the mean of the logits of b base networks

The base networks that a device trains advance by one with every round and device, so all are
trained equally often. The reference takes the first from a shuffled cycle and draws the others.
"""

from dataclasses import dataclass
from typing import ClassVar

from slimfl.devices import Device
from slimfl.methods.heterofl import HeteroFL
from slimfl.methods.method import Random
from slimfl.training import Work


@dataclass(frozen=True)
class SplitMix(HeteroFL):
    """As many base networks as a device can hold, different ones in every round."""

    name: str = "split-mix"
    title: ClassVar[str] = "Split-Mix"

    def assign(self, device: Device, round: int, random: Random) -> Work:
        """The first base networks in an order that advances every round."""
        block = tuple(range(device.max_width + 1))
        return Work(
            block,
            messages=(block,),
            step="slimtrain-accumulate",
            weights=(1.0,) * len(self.widths),
            channels=("roll", round - 1 + device.id),
        )
