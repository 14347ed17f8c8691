"""Weight initialisation as a function of the seed."""

import torch
from torch import nn

from slimfl.nn.layers import SlimConv2d, SlimLinear
from slimfl.rng import generator


def initialise(network: nn.Module, kind: str, seed: int) -> None:
    """Set all weights anew.

    `he` (fan in) keeps the variance of the forward pass in a network of ReLUs without batch norm,
    `he-fan-out` that of the backward pass; `xavier` compromises; `torch` is PyTorch's default.
    """
    numbers = torch.Generator().manual_seed(
        int(generator(seed, "initialisation").integers(2**63 - 1))
    )
    for module in network.modules():
        if not isinstance(module, SlimConv2d | SlimLinear | nn.Conv2d | nn.Linear):
            continue
        weight, bias = module.weight, module.bias
        with torch.no_grad():
            match kind:
                case "he":
                    nn.init.kaiming_normal_(weight, nonlinearity="relu", generator=numbers)
                case "he-fan-out":
                    nn.init.kaiming_normal_(weight, mode="fan_out", generator=numbers)
                case "xavier":
                    nn.init.xavier_uniform_(weight, generator=numbers)
                case "torch":
                    nn.init.kaiming_uniform_(weight, a=5**0.5, generator=numbers)
                case _:
                    raise ValueError(f"unknown initialisation {kind!r}")
            if bias is not None:
                bound = weight[0].numel() ** -0.5 if kind == "torch" else 0.0
                bias.uniform_(-bound, bound, generator=numbers)
