"""FedRolex and Federated Dropout: a device trains other channels in every round.

FedRolex: S. Alam et al., "FedRolex: model-heterogeneous federated learning with rolling sub-model
extraction", NeurIPS 2022. Federated Dropout: S. Caldas et al., "Expanding the reach of federated
learning by reducing client resource requirements", 2018. In pseudo-code::

    round t, a layer with n channels, a device with maximum width r:
        FedRolex:          trains a cyclic window of ceil(r n) channels that moves by one per round
        Federated Dropout: trains ceil(r n) channels drawn for this device and round
    it sends those; server: every parameter is the plain mean over the devices that hold it

No device trained a narrow width of the result, so only the full one is tested.
"""

from dataclasses import dataclass
from typing import ClassVar

from slimfl.devices import Device
from slimfl.methods.heterofl import HeteroFL
from slimfl.methods.method import Random
from slimfl.nn import ChannelOrder
from slimfl.training import Work


@dataclass(frozen=True)
class FedRolex(HeteroFL):
    """The window rolls: over n rounds every channel of n is trained equally often."""

    name: str = "fedrolex"
    title: ClassVar[str] = "FedRolex"

    def evaluates(self) -> tuple[int, ...]:
        """Only the full width."""
        return (len(self.widths) - 1,)

    def assign(self, device: Device, round: int, random: Random) -> Work:
        """The device's widest width of the network in this round's order of channels."""
        block = tuple(range(device.max_width + 1))
        order = self.order(round, random)
        return Work((device.max_width,), messages=(block,), channels=order)

    def order(self, round: int, random: Random) -> ChannelOrder:
        """The window starts at the first channel in the first round."""
        return "roll", round - 1


@dataclass(frozen=True)
class FederatedDropout(FedRolex):
    """The channels are drawn at random."""

    name: str = "federated-dropout"
    title: ClassVar[str] = "Federated Dropout"

    def order(self, round: int, random: Random) -> ChannelOrder:
        """A new draw for every device and round."""
        return "shuffle", int(random().integers(2**31))
