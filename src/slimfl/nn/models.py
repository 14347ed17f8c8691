"""From a model's name to a network: ours by name, a user's own by `package.module:Name`."""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from slimfl.errors import RequestError
from slimfl.experiment import OWN
from slimfl.experiment.naming import construct, resolve
from slimfl.nn.initialisation import initialise
from slimfl.nn.layers import SlimLinear
from slimfl.nn.resnet import ResNet
from slimfl.nn.split_mix import SplitMixMobileNet
from slimfl.nn.ul_mobilenet import ULMobileNet
from slimfl.nn.us_mobilenet import USMobileNet
from slimfl.nn.widths import Slimmable
from slimfl.rng import generator


class MLP(nn.Module):
    """Linear layers with ReLUs between them, on the pixels of an image: the smallest network.

    >>> MLP(features=784, hidden=(8,))(__import__("torch").zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        in_channels: int = 1,
        classes: int = 10,
        features: int | None = None,
        hidden: tuple[int, ...] = (128, 64),
        rows: int = 28,
        columns: int = 28,
    ) -> None:
        super().__init__()
        sizes = [features or in_channels * rows * columns, *hidden]
        layers: list[nn.Module] = []
        for number, (into, out) in enumerate(pairwise(sizes)):
            layers += [SlimLinear(into, out, slim_in=number > 0), nn.ReLU()]
        self.layers = nn.Sequential(*layers)
        self.head = SlimLinear(sizes[-1], classes, slim_in=bool(hidden), slim_out=False)

    def forward(self, images: Tensor) -> Tensor:
        """The logits of images [sample, channel, row, column]."""
        logits: Tensor = self.head(self.layers(images.flatten(1)))
        return logits


MODELS: dict[str, type[nn.Module]] = {
    "ul-mobilenet": ULMobileNet,
    "us-mobilenet": USMobileNet,
    "split-mix": SplitMixMobileNet,
    "resnet": ResNet,
    "mlp": MLP,
}


def build(
    name: str,
    options: dict[str, Any],
    *,
    in_channels: int = 1,
    classes: int = 10,
    widths: tuple[float, ...] = (0.5, 1.0),
    initialisation: str = "he",
    seed: int = 0,
) -> nn.Module:
    """The initialised network.

    Args:
        name: One of `MODELS`, or `package.module:Name` of a factory.
        options: Further arguments of the factory.
        in_channels: Of the dataset's images; given to a factory with a parameter of that name.
        classes: Of the dataset; likewise.
        widths: Of the experiment; likewise.
        initialisation: The kind; see `initialise`.
        seed: Of the weights.
    """
    if name == OWN:
        raise RequestError(
            "this run was made with a network object; pass it again with "
            "slimfl.Model(name=...) or slimfl.resume(..., network=...)"
        )
    factory = resolve("model", name, MODELS, lambda made: issubclass(made, nn.Module))
    with torch.random.fork_rng(devices=[]):
        # parameters that `initialise` does not know are drawn by their layers
        torch.manual_seed(int(generator(seed, "own layers").integers(2**63 - 1)))
        offered = {"in_channels": in_channels, "classes": classes, "widths": widths}
        network = construct("model", name, factory, options, offered, key="model.options")
    if not isinstance(network, nn.Module):
        raise RequestError(f"{name!r} returned a {type(network).__name__}, not a torch network")
    check(network, name)
    initialise(network, initialisation, seed)
    return network


def check(network: nn.Module, name: str | None = None) -> None:
    """Refuse what would silently go wrong: equal widths, state that is neither trained nor sent."""
    if not any(isinstance(module, Slimmable) for module in network.modules()):
        raise RequestError(
            f"{repr(name) if name else 'the network'} has no slimmable layer, so all widths would "
            "be the same; build it from SlimConv2d and SlimLinear, or pass it through "
            "slimfl.slimmable"
        )
    for module in network.modules():
        if isinstance(module, nn.modules.batchnorm._NormBase) and module.track_running_stats:
            raise RequestError(
                f"the network has a {type(module).__name__}, whose running statistics differ by "
                "width and are not sent; use SlimBatchNorm2d or SlimGroupNorm"
            )
