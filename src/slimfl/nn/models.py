"""From a model's name to an initialised network: ours by name, others by `package.module:Name`."""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from slimfl.errors import RequestError
from slimfl.experiment import OWN, Experiment
from slimfl.experiment.naming import construct, resolve
from slimfl.nn.layers import SlimConv2d, SlimLinear
from slimfl.nn.mobilenets import SplitMixMobileNet, ULMobileNet, USMobileNet
from slimfl.nn.resnet import ResNet
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
            "this run was made with a network object, which its folder cannot store; pass it again "
            "with slimfl.Model(name=...), or as network=... of slimfl.resume or slimfl.load"
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


def network_of(experiment: Experiment, channels: int, classes: int) -> nn.Module:
    """The network that an experiment names, as its run begins with it.

    Args:
        experiment: The experiment.
        channels: Of the dataset's images.
        classes: Of the dataset.
    """
    model = experiment.model
    return build(
        model.name,
        model.options,
        in_channels=channels,
        classes=classes,
        widths=model.widths,
        initialisation=model.initialisation,
        seed=experiment.seed,
    )


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


def initialise(network: nn.Module, kind: str, seed: int) -> None:
    """Initialise all weights.

    Args:
        network: Whose weights are set.
        kind: `he` (fan in) keeps the variance of the forward pass in a network of ReLUs without
            batch norm, `he-fan-out` that of the backward pass; `xavier` is a compromise; `torch`
            is PyTorch's default.
        seed: The experiment's.
    """
    numbers = torch.Generator().manual_seed(
        int(generator(seed, "initialisation").integers(2**63 - 1))
    )
    for module in network.modules():
        if not isinstance(module, SlimConv2d | SlimLinear | nn.Conv2d | nn.Linear):
            continue
        weight, bias = module.weight, module.bias
        # not nn.init's fan out, which assumes that a depthwise input reaches all output channels
        reached = 1 if _depthwise(module) else len(weight)
        fan_in, fan_out = weight[0].numel(), reached * weight[0, 0].numel()
        with torch.no_grad():
            match kind:
                case "he":
                    weight.normal_(0, (2 / fan_in) ** 0.5, generator=numbers)
                case "he-fan-out":
                    weight.normal_(0, (2 / fan_out) ** 0.5, generator=numbers)
                case "xavier":
                    bound = (6 / (fan_in + fan_out)) ** 0.5
                    weight.uniform_(-bound, bound, generator=numbers)
                case "torch":
                    nn.init.kaiming_uniform_(weight, a=5**0.5, generator=numbers)
                case _:
                    raise ValueError(f"unknown initialisation {kind!r}")
            if bias is not None:
                bound = weight[0].numel() ** -0.5 if kind == "torch" else 0.0
                bias.uniform_(-bound, bound, generator=numbers)


def _depthwise(module: nn.Module) -> bool:
    if isinstance(module, SlimConv2d):
        return module.depthwise
    return isinstance(module, nn.Conv2d) and module.groups == module.in_channels > 1
