"""Weight initialisation as a function of the seed."""

import torch
from torch import nn

from slimfl.nn.layers import SlimConv2d, SlimLinear
from slimfl.rng import generator


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
