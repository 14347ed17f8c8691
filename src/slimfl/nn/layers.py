"""Slimmable layers: a narrower width is a slice of the shared weights, cut at run time."""

from collections.abc import Mapping
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from slimfl.nn.widths import Slimmable, active_width, channels_at

Plain = TypeVar("Plain", bound=nn.Module)


class SlimConv2d(nn.Module):
    """A convolution whose width uses `weight[:out, :in]` of images [sample, channel, row, column].

    Args:
        in_channels: At 1.0x.
        out_channels: At 1.0x.
        kernel_size: Rows and columns, or one number for both.
        stride: As of `torch.nn.Conv2d`.
        padding: As of `torch.nn.Conv2d`, with zeros.
        dilation: As of `torch.nn.Conv2d`.
        groups: 1, or the number of channels: a depthwise convolution, with equal channels in and
            out.
        bias: Whether to add one.
        slim_in: False keeps all input channels at every width: the first layer, which sees the
            image.
        slim_out: False keeps all output channels at every width.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] | str = 0,
        dilation: int | tuple[int, int] = 1,
        groups: int = 1,
        bias: bool = True,
        slim_in: bool = True,
        slim_out: bool = True,
    ) -> None:
        super().__init__()
        self.depthwise = groups == in_channels == out_channels and groups > 1
        if groups != 1 and not self.depthwise:
            raise ValueError("a slimmable convolution has groups=1 or is depthwise")
        if self.depthwise and slim_in != slim_out:
            raise ValueError("a depthwise convolution slims its input and output alike")
        kernel = _pair(kernel_size)
        if padding == "same" and _pair(stride) != (1, 1):
            raise ValueError("padding 'same' does not go with a stride; give a number")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.slim_in, self.slim_out = slim_in, slim_out
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels // groups, *kernel))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        _reset(self.weight, self.bias)

    def active_shapes(self, width: float) -> Mapping[str, tuple[int, ...]]:
        """The leading block of every parameter at a width."""
        out = channels_at(self.out_channels, width) if self.slim_out else self.out_channels
        into = channels_at(self.in_channels, width) if self.slim_in else self.in_channels
        into = 1 if self.depthwise else into
        shapes: dict[str, tuple[int, ...]] = {"weight": (out, into, *self.weight.shape[2:])}
        if self.bias is not None:
            shapes["bias"] = (out,)
        return shapes

    def forward(self, x: Tensor) -> Tensor:
        """Convolve with the active width's block of weights."""
        out, into = self.active_shapes(active_width())["weight"][:2]
        bias = None if self.bias is None else self.bias[:out]
        groups = out if self.depthwise else 1
        weight = self.weight[:out, :into]
        if self._only_picks:
            return F.conv2d(self._picked(x), weight, bias, groups=groups)
        return F.conv2d(x, weight, bias, self.stride, self.padding, self.dilation, groups)

    @property
    def _only_picks(self) -> bool:
        """True if the stride skips pixels that no weight ever sees."""
        return tuple(self.weight.shape[2:]) == (1, 1) and _pair(self.stride) != (1, 1)

    def _picked(self, x: Tensor) -> Tensor:
        """The pixels that a strided 1x1 convolution uses.

        oneDNN's gradient of a strided 1x1 convolution writes past a buffer if channels-last images
        have few channels, and crashes the interpreter:
        https://github.com/uxlfoundation/oneDNN/issues/6035. Without a stride it does not.
        """
        if not isinstance(
            self.padding, str
        ):  # "valid" means none, and "same" does not allow a stride
            rows, columns = _pair(self.padding)
            x = F.pad(x, (columns, columns, rows, rows))
        down, right = _pair(self.stride)
        return x[:, :, ::down, ::right]

    def plain(self, width: float) -> nn.Conv2d:
        """The block of a width as a plain torch convolution that shares nothing."""
        out, into, rows, columns = self.active_shapes(width)["weight"]
        conv = nn.Conv2d(
            out if self.depthwise else into,
            out,
            (rows, columns),
            self.stride,
            self.padding,
            self.dilation,
            out if self.depthwise else 1,
            self.bias is not None,
            device="meta",  # no random initialisation, as the weights are set next
        )
        return filled(conv, self, width)

    def extra_repr(self) -> str:
        """The sizes, as torch prints them."""
        kind = ", depthwise" if self.depthwise else ""
        return f"{self.in_channels}, {self.out_channels}, {tuple(self.weight.shape[2:])}{kind}"


class SlimLinear(nn.Module):
    """A linear layer whose width uses `weight[:out, :in]` of rows [sample, feature].

    Args:
        in_features: At 1.0x.
        out_features: At 1.0x.
        bias: Whether to add one.
        slim_in: False keeps all input features at every width: the first layer.
        slim_out: False keeps all output features at every width: the classes.
        features_per_channel: Input features per channel of the previous layer: more than one after
            a flatten.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        slim_in: bool = True,
        slim_out: bool = True,
        features_per_channel: int = 1,
    ) -> None:
        super().__init__()
        if in_features % features_per_channel:
            raise ValueError("features_per_channel must divide in_features")
        self.in_features, self.out_features = in_features, out_features
        self.slim_in, self.slim_out = slim_in, slim_out
        self.features_per_channel = features_per_channel
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        self.bias = nn.Parameter(torch.empty(out_features)) if bias else None
        _reset(self.weight, self.bias)

    def active_shapes(self, width: float) -> Mapping[str, tuple[int, ...]]:
        """The leading block of every parameter at a width."""
        out = channels_at(self.out_features, width) if self.slim_out else self.out_features
        into = self.in_features
        if self.slim_in:
            channels = self.in_features // self.features_per_channel
            into = channels_at(channels, width) * self.features_per_channel
        shapes: dict[str, tuple[int, ...]] = {"weight": (out, into)}
        if self.bias is not None:
            shapes["bias"] = (out,)
        return shapes

    def forward(self, x: Tensor) -> Tensor:
        """Multiply with the active width's block of weights."""
        out, into = self.active_shapes(active_width())["weight"]
        bias = None if self.bias is None else self.bias[:out]
        return F.linear(x, self.weight[:out, :into], bias)

    def plain(self, width: float) -> nn.Linear:
        """The block of a width as a plain torch linear layer that shares nothing."""
        out, into = self.active_shapes(width)["weight"]
        return filled(nn.Linear(into, out, self.bias is not None, device="meta"), self, width)

    def extra_repr(self) -> str:
        """The sizes, as torch prints them."""
        return f"{self.in_features}, {self.out_features}"


def leading(parameter: nn.Parameter, shape: tuple[int, ...]) -> nn.Parameter:
    """A copy of a parameter's leading block, trainable if the parameter is."""
    block = parameter.detach()[tuple(slice(0, size) for size in shape)]
    return nn.Parameter(block.clone(memory_format=torch.contiguous_format), parameter.requires_grad)


def filled(plain: Plain, slim: nn.Module, width: float) -> Plain:
    """Give a layer copies of what a slimmable one uses at a width.

    Args:
        plain: Whose parameters are replaced; it is returned.
        slim: The slimmable layer.
        width: The share of channels.
    """
    assert isinstance(slim, Slimmable)
    for name, shape in slim.active_shapes(width).items():
        setattr(plain, name, leading(slim.get_parameter(name), shape))
    return plain


def average_pool(x: Tensor) -> Tensor:
    """The mean of every channel of images [sample, channel, row, column].

    Computed as a scaled sum: the gradient of `x.mean((2, 3))` has another memory layout than
    channels-last activations, which slows down training on a CPU.
    """
    return x.sum((2, 3)) / (x.shape[2] * x.shape[3])


def _pair(value: int | tuple[int, int]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def _reset(weight: Tensor, bias: Tensor | None) -> None:
    """PyTorch's own default, so that an adapted network starts like its original."""
    nn.init.kaiming_uniform_(weight, a=5**0.5)
    if bias is not None:
        bound = weight[0].numel() ** -0.5
        nn.init.uniform_(bias, -bound, bound)
