"""Normalisation at every width: groups of fixed size, or separate batch statistics per width."""

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from slimfl.errors import RequestError
from slimfl.nn.layers import filled
from slimfl.nn.widths import active_width, channels_at


class SlimGroupNorm(nn.Module):
    """Group normalisation whose groups have the same channels at every width.

    A narrower width has fewer groups, not smaller ones: it normalises exactly as the full network
    does in its leading groups. There are no statistics.

    Args:
        num_groups: At 1.0x; every width must have whole groups.
        num_channels: At 1.0x.
        eps: Added to the variance.

    >>> SlimGroupNorm(4, 32).active_shapes(0.5)
    {'weight': (16,), 'bias': (16,)}
    """

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"{num_groups} groups do not divide {num_channels} channels")
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = nn.Parameter(torch.ones(num_channels))
        self.bias = nn.Parameter(torch.zeros(num_channels))

    def active_shapes(self, width: float) -> Mapping[str, tuple[int, ...]]:
        """The leading channels, which must be complete groups."""
        channels = channels_at(self.num_channels, width)
        per_group = self.num_channels // self.num_groups
        if channels % per_group:
            raise RequestError(
                f"{self} has {per_group} channels per group, and width {width} has {channels} "
                "channels: choose groups that every width has whole, or other widths"
            )
        return {"weight": (channels,), "bias": (channels,)}

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the groups of the active width."""
        (channels,) = self.active_shapes(active_width())["weight"]
        groups = channels * self.num_groups // self.num_channels
        return F.group_norm(x, groups, self.weight[:channels], self.bias[:channels], self.eps)

    def plain(self, width: float) -> nn.GroupNorm:
        """This layer at a width as a plain torch layer."""
        (channels,) = self.active_shapes(width)["weight"]
        groups = channels * self.num_groups // self.num_channels
        return filled(nn.GroupNorm(groups, channels, self.eps), self, width)

    def extra_repr(self) -> str:
        """The sizes, as torch prints them."""
        return f"{self.num_groups}, {self.num_channels}"


class SlimBatchNorm2d(nn.Module):
    """Switchable batch normalisation (Yu et al., 2019): scale, shift and statistics per width.

    The parameters of a width belong to its segment. The running mean and variance are parameters
    without a gradient, so they are part of the flat vector: devices send them, the radio may lose
    them, the server averages them like weights, checkpoints store them. The optimiser leaves them
    alone (`statistics`). Averaging variances ignores the differences between the devices' means, so
    the variances are too small if data differs between devices; group normalisation does not have
    this problem.

    Args:
        num_features: Channels at 1.0x.
        widths: Those with statistics of their own.
        eps: Added to the variance.
        momentum: Weight of a batch in the running statistics.

    >>> layer = SlimBatchNorm2d(32, widths=(0.5, 1.0))
    >>> layer.active_shapes(0.5)["mean0"], layer.active_shapes(0.5)["mean1"]
    ((16,), (0,))
    """

    def __init__(
        self,
        num_features: int,
        widths: Sequence[float],
        eps: float = 1e-5,
        momentum: float = 0.1,
    ) -> None:
        super().__init__()
        self.num_features, self.widths = num_features, tuple(map(float, widths))
        self.eps, self.momentum = eps, momentum
        for index, width in enumerate(self.widths):
            size = channels_at(num_features, width)
            for name, start, trained in (
                ("weight", 1.0, True),
                ("bias", 0.0, True),
                ("mean", 0.0, False),
                ("variance", 1.0, False),
            ):
                value = nn.Parameter(torch.full((size,), start), requires_grad=trained)
                self.register_parameter(f"{name}{index}", value)

    def active_shapes(self, width: float) -> Mapping[str, tuple[int, ...]]:
        """The parameters of this width and of narrower ones, none of wider ones."""
        last = self._index(width)
        sizes = [channels_at(self.num_features, one) for one in self.widths]
        return {
            f"{name}{index}": (size if index <= last else 0,)
            for index, size in enumerate(sizes)
            for name in ("weight", "bias", "mean", "variance")
        }

    def forward(self, x: Tensor) -> Tensor:
        """Normalise by the batch while training, by the width's running statistics otherwise."""
        weight, bias, mean, variance = self.at(active_width())
        if not self.training:
            variance = variance.clamp_min(0)  # privacy noise may have made it negative
        return F.batch_norm(x, mean, variance, weight, bias, self.training, self.momentum, self.eps)

    def plain(self, width: float) -> nn.BatchNorm2d:
        """This layer at a width as a plain torch layer with the statistics of that width."""
        weight, bias, mean, variance = self.at(width)
        layer = nn.BatchNorm2d(len(weight), self.eps, self.momentum)
        state = {"weight": weight, "bias": bias, "running_mean": mean}
        state["running_var"] = variance.clamp_min(0)
        layer.load_state_dict(state, strict=False)
        return layer.to(weight.device, weight.dtype)

    def at(self, width: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Scale, shift, running mean and running variance of a width."""
        index = self._index(width)
        own = dict(self.named_parameters(recurse=False))
        return (
            own[f"weight{index}"],
            own[f"bias{index}"],
            own[f"mean{index}"],
            own[f"variance{index}"],
        )

    def _index(self, width: float) -> int:
        if width not in self.widths:
            known = ", ".join(map(str, self.widths))
            raise RequestError(
                f"a SlimBatchNorm2d was made for the widths {known}, not for {width}: "
                "give it the widths of model.widths"
            )
        return self.widths.index(width)

    def extra_repr(self) -> str:
        """The sizes, as torch prints them."""
        return f"{self.num_features}, widths={self.widths}"


def statistics(network: nn.Module) -> list[nn.Parameter]:
    """The parameters that the forward pass changes and optimisers must not."""
    return [
        parameter
        for module in network.modules()
        if isinstance(module, SlimBatchNorm2d)
        for parameter in module.parameters(recurse=False)
        if not parameter.requires_grad
    ]
