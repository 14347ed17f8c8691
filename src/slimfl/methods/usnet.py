"""Federated US-Net: J. Yu, T. Huang, "Universally slimmable networks and improved training
techniques", ICCV 2019, with federated averaging around it.

In pseudo-code::

    every batch: the sandwich rule (narrowest, widest and some widths between);
        the widest learns from the labels, the others from its output (in-place distillation);
        gradients add up, one step
    a device sends all that it trained in one message; server: mean over the devices that hold it
"""

from dataclasses import dataclass
from typing import ClassVar

from slimfl.devices import Device
from slimfl.methods.heterofl import HeteroFL
from slimfl.methods.method import Random
from slimfl.training import Work


@dataclass(frozen=True)
class USNet(HeteroFL):
    """The sandwich rule; training.sampled_widths is the number of widths per step."""

    name: str = "us-net"
    title: ClassVar[str] = "US-Net"

    def assign(self, device: Device, round: int, random: Random) -> Work:
        """All widths up to the device's by the sandwich rule, in one message."""
        block = tuple(range(device.max_width + 1))
        return Work(
            block,
            messages=(block,),
            step="ustrain-accumulate",
            visit="sandwich",
            weights=(1.0,) * len(self.widths),
        )
