"""The cost of a width: parameters, multiply-adds and bits."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from slimfl.errors import RequestError
from slimfl.nn.widths import Slimmable, at_width, segments


@dataclass(frozen=True)
class WidthCost:
    """The cost of one width; a segment's is the difference from the next narrower width."""

    width: float
    parameters: int
    segment_parameters: int
    multiply_adds: int
    bits: int
    segment_bits: int


def cost(
    network: nn.Module,
    widths: tuple[float, ...],
    image_shape: tuple[int, int, int],
    bits_per_parameter: float = 32,
) -> list[WidthCost]:
    """Count one forward pass of one image at every width.

    Args:
        network: Made of slimmable layers.
        widths: Ascending.
        image_shape: Channel, row, column.
        bits_per_parameter: As they are sent.
    """
    sizes = segments(network, widths).sizes
    rows, total = [], 0
    for width, size in zip(widths, sizes.tolist(), strict=True):
        total += size
        rows.append(
            WidthCost(
                width=width,
                parameters=total,
                segment_parameters=size,
                multiply_adds=multiply_adds(network, width, image_shape),
                bits=round(total * bits_per_parameter),
                segment_bits=round(size * bits_per_parameter),
            )
        )
    return rows


def output_shape(network: nn.Module, image_shape: tuple[int, int, int]) -> tuple[int, ...]:
    """The shape of the full network's output for one image (channel, row, column)."""
    parameter = next(network.parameters())
    with _only_counting(network), torch.no_grad():
        return tuple(network(torch.zeros(1, *image_shape, device=parameter.device)).shape)


def multiply_adds(
    network: nn.Module,
    width: float,
    image_shape: tuple[int, int, int],
    *,
    training: bool = False,
) -> int:
    """Multiply-adds of the convolutions and linear layers for one image at a width.

    Args:
        network: Made of slimmable layers.
        width: Of the pass.
        image_shape: Channel, row, column.
        training: Whether to count a forward pass in training, which differs for networks with
            `lighter_in_training`.
    """
    lighter = training and getattr(network, "lighter_in_training", False)
    counts: list[int] = []

    def count(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        if isinstance(module, Slimmable):
            shape = tuple(module.active_shapes(width)["weight"])
        else:
            assert isinstance(module.weight, Tensor)
            shape = tuple(module.weight.shape)
        counts.append(output.numel() * math.prod(shape[1:]))

    layers = [
        module
        for module in network.modules()
        if isinstance(module, nn.Conv2d | nn.Linear)
        or (
            isinstance(module, Slimmable)
            and len(module.active_shapes(width).get("weight", ())) > 1  # not a norm's
        )
    ]
    hooks = [layer.register_forward_hook(count) for layer in layers]
    parameter = next(network.parameters())
    try:
        with _only_counting(network, lighter), torch.no_grad(), at_width(width):
            network(torch.zeros(1, *image_shape, device=parameter.device))
    except RuntimeError as error:
        if width < 1 and _works(network, image_shape):
            raise RequestError(
                f"the network works at 1.0x but not at {width}x: {' '.join(str(error).split())}; "
                "between slimmable layers use SlimGroupNorm, SlimBatchNorm2d and layers without "
                "parameters"
            ) from None
        raise
    finally:
        for hook in hooks:
            hook.remove()
    return sum(counts)


def _works(network: nn.Module, image_shape: tuple[int, int, int]) -> bool:
    try:
        output_shape(network, image_shape)
    except RuntimeError:
        return False
    return True


@contextmanager
def _only_counting(network: nn.Module, training: bool = False) -> Iterator[None]:
    """Keep a forward pass that is only counted from changing statistics."""
    modes = [(module, module.training) for module in network.modules()]
    network.train(training)
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
