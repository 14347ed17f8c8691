"""Turn a plain sequential torch network into a slimmable one."""

import copy
from collections.abc import Sequence

import torch
from torch import nn

from slimfl.errors import RequestError
from slimfl.nn.layers import SlimConv2d, SlimLinear
from slimfl.nn.norms import SlimBatchNorm2d, SlimGroupNorm

#: Layers without parameters that treat all channels equally, so they work at any width.
WIDTH_FREE = (
    nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.GELU, nn.SiLU, nn.ELU, nn.Hardtanh, nn.Hardswish, nn.Tanh,
    nn.Sigmoid, nn.Identity, nn.Dropout, nn.Dropout2d, nn.Flatten, nn.MaxPool2d, nn.AvgPool2d,
    nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d,
)  # fmt: skip


def slimmable(network: nn.Sequential, widths: Sequence[float] | None = None) -> nn.Sequential:
    """A copy in which every layer is slimmable; at 1.0x it computes and trains the same.

    What has no such copy is refused: layers used twice, frozen parameters, norms without scale and
    shift or without running statistics, and norms of the image or of the classes.

    The first layer keeps its inputs (the image), the last its outputs (the classes). `widths` is
    needed for `BatchNorm2d`, which has separate statistics for each.

    >>> net = slimmable(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)))
    >>> type(net[0]).__name__, net[0].active_shapes(0.5)["weight"]
    ('SlimLinear', (4, 4))
    """
    if not isinstance(network, nn.Sequential):
        raise RequestError(
            f"only an nn.Sequential can be adapted, but this is a {type(network).__name__}; "
            "build it from SlimConv2d and SlimLinear instead"
        )
    layers = list(_unnested(network))
    weighted = [i for i, layer in enumerate(layers) if isinstance(layer, nn.Conv2d | nn.Linear)]
    if not weighted:
        raise RequestError("the network has no Conv2d or Linear layer to make slimmable")
    _refuse_shared_or_frozen(layers)
    result: list[nn.Module] = []
    channels, flat = 0, True
    for index, layer in enumerate(layers):
        first, last = index == weighted[0], index == weighted[-1]
        if isinstance(layer, nn.Conv2d):
            if any(isinstance(before, nn.Linear) for before in layers[:index]):
                raise RequestError(
                    f"layer {index}, a Conv2d, comes after a Linear, which slims another axis than "
                    "the channels; put all convolutions first"
                )
            flat = False
            result.append(_convolution(layer, first, last))
            channels = layer.out_channels
        elif isinstance(layer, nn.Linear):
            if not flat or (channels and layer.in_features % channels):
                raise RequestError(
                    f"layer {index}, a Linear, must see all features of an image in one row; put "
                    "an nn.Flatten() between it and the convolution before it"
                )
            result.append(_linear(layer, first, last, channels))
            channels = layer.out_features
        elif isinstance(layer, nn.GroupNorm | nn.BatchNorm2d):
            _refuse_norm(layer, index, weighted[0], weighted[-1])
            if isinstance(layer, nn.GroupNorm):
                result.append(_group_norm(layer))
            else:
                result.append(_batch_norm(layer, widths))
        elif isinstance(layer, WIDTH_FREE):
            if isinstance(layer, nn.Flatten) and layer.start_dim == 1:
                flat = flat or layer.end_dim in (-1, 3)
            result.append(copy.deepcopy(layer))
        else:
            raise RequestError(
                f"layer {index} is a {type(layer).__name__}, which has no slimmable form; "
                "use Conv2d, Linear, GroupNorm, BatchNorm2d and layers without parameters"
            )
    return nn.Sequential(*result)


def _refuse_shared_or_frozen(layers: Sequence[nn.Module]) -> None:
    seen: dict[int, int] = {}
    for index, layer in enumerate(layers):
        for name, parameter in layer.named_parameters():
            before = seen.setdefault(id(parameter), index)
            if before != index:
                raise RequestError(
                    f"layers {before} and {index} share their {name}, and copies would drift apart "
                    "in training; give each layer its own parameters"
                )
            if not parameter.requires_grad:
                raise RequestError(
                    f"the {name} of layer {index} is frozen (requires_grad=False), but every "
                    "parameter of a slimmable network is trained; unfreeze it"
                )


def _refuse_norm(layer: nn.GroupNorm | nn.BatchNorm2d, index: int, first: int, last: int) -> None:
    name = f"layer {index}, a {type(layer).__name__},"
    if not first < index < last:
        whose = "the image" if index < first else "the outputs of the last layer"
        raise RequestError(
            f"{name} normalises {whose}, which has the same channels at every width; remove it, or "
            "put a convolution or linear layer on both of its sides"
        )
    if not layer.affine:
        raise RequestError(
            f"{name} has affine=False, and slimmable norms have a scale and a shift; use "
            "affine=True"
        )
    if isinstance(layer, nn.BatchNorm2d) and not layer.track_running_stats:
        raise RequestError(
            f"{name} keeps no running statistics, and slimmable ones do; use "
            "track_running_stats=True, or a GroupNorm"
        )


def _unnested(network: nn.Sequential) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for layer in network:
        layers += _unnested(layer) if isinstance(layer, nn.Sequential) else [layer]
    return layers


def _convolution(layer: nn.Conv2d, first: bool, last: bool) -> SlimConv2d:
    if layer.padding_mode != "zeros":
        raise RequestError("a slimmable convolution pads with zeros only")
    if layer.groups > 1 and (first or last):
        raise RequestError(
            "a depthwise convolution slims its inputs and outputs alike, so it cannot be the first "
            "or the last layer"
        )
    try:
        slim = SlimConv2d(
            layer.in_channels,
            layer.out_channels,
            (layer.kernel_size[0], layer.kernel_size[1]),
            (layer.stride[0], layer.stride[1]),
            layer.padding
            if isinstance(layer.padding, str)
            else (layer.padding[0], layer.padding[1]),
            (layer.dilation[0], layer.dilation[1]),
            layer.groups,
            layer.bias is not None,
            slim_in=not first,
            slim_out=not last,
        )
    except ValueError as error:
        raise RequestError(str(error)) from None
    _copy(layer, slim)
    return slim


def _linear(layer: nn.Linear, first: bool, last: bool, channels: int) -> SlimLinear:
    # after a flatten, each channel of the previous layer becomes several features
    repeated = 1 if first or not channels else layer.in_features // channels
    slim = SlimLinear(
        layer.in_features, layer.out_features, layer.bias is not None, not first, not last, repeated
    )
    _copy(layer, slim)
    return slim


def _group_norm(layer: nn.GroupNorm) -> SlimGroupNorm:
    slim = SlimGroupNorm(layer.num_groups, layer.num_channels, layer.eps)
    slim.load_state_dict(layer.state_dict())
    return slim


def _batch_norm(layer: nn.BatchNorm2d, widths: Sequence[float] | None) -> SlimBatchNorm2d:
    if widths is None:
        raise RequestError(
            "the network has a BatchNorm2d, which needs statistics for every width; give the "
            "widths: slimmable(network, widths=(0.5, 1.0))"
        )
    if layer.momentum is None:
        raise RequestError("a slimmable BatchNorm2d needs a momentum, such as 0.1")
    slim = SlimBatchNorm2d(layer.num_features, widths, layer.eps, layer.momentum)
    given = (layer.weight, layer.bias, layer.running_mean, layer.running_var)
    with torch.no_grad():
        for width in slim.widths:
            for own, value in zip(slim.at(width), given, strict=True):
                if value is not None:
                    own.copy_(value[: len(own)])
    return slim


def _copy(source: nn.Conv2d | nn.Linear, target: SlimConv2d | SlimLinear) -> None:
    target.load_state_dict(source.state_dict())
