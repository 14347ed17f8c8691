"""From a model's name to a network: ours by name, a user's own by `module:factory`."""

import importlib
import inspect
from typing import Any

from torch import nn

from slimfl.errors import RequestError
from slimfl.nn.initialise import initialise
from slimfl.nn.layers import Slimmable
from slimfl.nn.ul_mobilenet import ULMobileNet

MODELS = {"ul-mobilenet": ULMobileNet}


def build(
    name: str,
    options: dict[str, Any],
    *,
    in_channels: int = 1,
    classes: int = 10,
    initialisation: str = "he",
    seed: int = 0,
) -> nn.Module:
    """The initialised network.

    A factory that has the parameters `in_channels` and `classes` is told those of the dataset.
    """
    factory: Any = MODELS.get(name) or _import(name)
    known = inspect.signature(factory).parameters
    offered = {"in_channels": in_channels, "classes": classes}
    given = {key: value for key, value in offered.items() if key in known} | options
    try:
        network = factory(**given)
    except (TypeError, ValueError) as error:
        raise RequestError(f"model {name!r} does not take model.options: {error}") from None
    if not isinstance(network, nn.Module):
        raise RequestError(f"{name!r} returned a {type(network).__name__}, not a torch network")
    if not any(isinstance(module, Slimmable) for module in network.modules()):
        raise RequestError(
            f"{name!r} has no slimmable layer; build it from SlimConv2d and SlimLinear, "
            "or pass it through slimfl.nn.slimmable"
        )
    initialise(network, initialisation, seed)
    return network


def _import(name: str) -> Any:
    module, colon, attribute = name.partition(":")
    if not colon:
        raise RequestError(
            f"there is no model {name!r}; choose {', '.join(MODELS)} or package.module:factory"
        )
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise RequestError(f"model {name!r} cannot be imported: {error}") from None
