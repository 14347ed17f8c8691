"""The sub-network of one width as an ordinary `nn.Module`, without unused weights.

A layer, or a whole network, defines this with a method `plain(width) -> nn.Module`. `SlimConv2d`
gives an `nn.Conv2d`, `SlimLinear` an `nn.Linear`, UL-MobileNet an `nn.Sequential`. A slimmable
layer without that method keeps its class: its parameters are cut to what `active_shapes` says, and
the network runs at its width without being told.
"""

import copy
from collections.abc import Callable
from typing import Any

from torch import nn

from slimfl.errors import RequestError
from slimfl.nn.layers import filled
from slimfl.nn.widths import Slimmable, at_width


def standalone(network: nn.Module, width: float) -> nn.Module:
    """A copy of what a width uses; it shares no weights, and its `state_dict` has the same names.

    >>> from slimfl.nn import ULMobileNet
    >>> small = standalone(ULMobileNet(), 0.5)
    >>> type(small.stem).__name__, sum(p.numel() for p in small.parameters())
    ('Conv2d', 1530)
    """
    if not 0 < width <= 1:
        raise RequestError(f"a width is above 0 and at most 1, not {width}")
    if _has_plain_form(network):
        result = _plain(network, width)
    else:
        result = copy.deepcopy(network)
        _cut(result, width, {})
        if not all(type(module).__module__.startswith("torch.") for module in result.modules()):
            # its own code may use the active width
            result.forward = _AtWidth(result.forward, width)
    _tie(network, result)
    return result


def _cut(module: nn.Module, width: float, done: dict[int, nn.Module]) -> None:
    """Cut a module's own parameters if it is slimmable, then its layers."""
    if isinstance(module, Slimmable):
        filled(module, module, width)
    # a layer that is used in several places is cut once
    for name, child in module._modules.items():
        if child is None:
            continue
        if id(child) not in done:
            if _has_plain_form(child):
                done[id(child)] = _plain(child, width)
            else:
                done[id(child)] = child
                _cut(child, width, done)
        module._modules[name] = done[id(child)]


def _has_plain_form(module: nn.Module) -> bool:
    """True if `plain` describes this class: a subclass with another `forward` needs its own."""
    for ancestor in type(module).__mro__:
        if "plain" in vars(ancestor):
            return True
        if "forward" in vars(ancestor):
            return False
    return False


def _plain(module: Any, width: float) -> nn.Module:
    plain: nn.Module = module.plain(width)
    return plain.train(module.training)


def _tie(network: nn.Module, result: nn.Module) -> None:
    """Tie parameters again that were tied, if the width cuts them equally."""
    first: dict[int, list[str]] = {}
    ours = dict(result.named_parameters(remove_duplicate=False))
    for name, parameter in network.named_parameters(remove_duplicate=False):
        if name not in ours:  # a layer's plain form may rename its parameters
            continue
        for other in first.setdefault(id(parameter), []):
            if ours[other].shape == ours[name].shape:
                place, _, own = name.rpartition(".")
                setattr(result.get_submodule(place), own, ours[other])
                break
        else:
            first[id(parameter)].append(name)


class _AtWidth:
    """A network's `forward` at a fixed width. An object, so that copies use their own weights."""

    def __init__(self, forward: Callable[..., Any], width: float) -> None:
        self.forward, self.width = forward, width

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        with at_width(self.width):
            return self.forward(*inputs, **named)
