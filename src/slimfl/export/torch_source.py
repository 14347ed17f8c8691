"""A network as Python text: torch's own layers and a `forward`, no slimfl and no pickle.

torch's archives (`.pt2`) hold a pickle of the example inputs, and `torch.export.load` unpickles. So
the weights are a safetensors file, and the network is a readable Python module.
"""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor, nn

from slimfl.errors import RunError
from slimfl.export.deployable import Deployable

_HEAD = '''"""Sub-network {name}: raw bytes in, logits out. Needs torch and safetensors.

    from {module} import load
    logits = load()(images)  # uint8 [sample, channel, row, column]
"""

from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn
'''

_LOAD = '''

def load(path: Path = Path(__file__).with_name("{name}.safetensors")) -> Network:
    """The network with its weights, which are in a file beside this one."""
    network = Network()
    network.network.load_state_dict(load_file(path))
    return network.eval()
'''

#: Names that the text of `forward` may use besides torch.
_GLOBALS = {
    "torch": "",
    "device": "from torch import device",
    "inf": "from math import inf",
    "nan": "from math import nan",
}


def module_name(name: str) -> str:
    """A name under which Python can import the module.

    >>> module_name("ul-mobilenet-0.5x")
    'ul_mobilenet_0_5x'
    """
    return re.sub(r"\W|^(?=\d)", "_", name)


def source(network: Deployable, name: str) -> str:
    """A module that builds the same network; `name` is letters, digits, dots and dashes."""
    try:
        traced = torch.fx.symbolic_trace(network)
        for node in traced.graph.nodes:
            node.type = None  # annotations would need further imports
        code = traced.graph.python_code("self")
        named = [key for key in code.globals if re.search(rf"\b{re.escape(key)}\b", code.src)]
        foreign = [key for key in named if key not in _GLOBALS]
        if foreign:
            raise ValueError(f"forward uses {', '.join(foreign)}")
        body = _constructor(traced, set(network.state_dict()))
    except Exception as error:  # tracing may fail in any way on a user's own code
        reason = " ".join(str(error).split())[:300]
        raise RunError(
            f"this network cannot be written as plain torch layers ({reason}); "
            "choose --format onnx or safetensors"
        ) from error
    imports = [line for key, line in _GLOBALS.items() if line and key in named]
    # the part after a semicolon frees memory, which Python does anyway when the call ends
    shown = [line.partition(";  ")[0].rstrip() for line in code.src.strip().splitlines()]
    forward = "\n".join(f"    {line}" for line in shown)
    head = _HEAD.format(name=name, module=module_name(name)) + "".join(
        f"{line}\n" for line in imports
    )
    return f"{head}\n\nclass Network(nn.Module):\n{body}\n\n{forward}\n{_LOAD.format(name=name)}"


def _constructor(traced: torch.fx.GraphModule, stored: set[str]) -> str:
    lines = ["    def __init__(self):", "        super().__init__()"]
    for name, module in traced.named_modules():
        place, _, own = name.rpartition(".")
        plain = type(module) is nn.Module or isinstance(module, torch.fx.GraphModule)
        if name:
            layer = _layer(module, plain)
            named = f".{own} = {layer}" if own.isidentifier() else f".add_module({own!r}, {layer})"
            lines.append(f"        {_place(place)}{named}")
        if plain:
            own_tensors = _own_tensors(module, name, stored)
            lines += [f"        {_place(name)}.{each}" for each in own_tensors]
    return "\n".join(lines)


def _place(path: str) -> str:
    """The expression for a submodule within a method."""
    if all(part.isidentifier() for part in path.split(".")):
        return f"self.{path}"
    return f"self.get_submodule({path!r})" if path else "self"


def _layer(module: nn.Module, plain: bool) -> str:
    """The call that makes a layer, which is how torch prints layers."""
    if plain:
        return "nn.Module()"
    text = repr(module)
    if getattr(nn, type(module).__name__, None) is not type(module) or "\n" in text:
        raise ValueError(f"a {type(module).__name__} has no such form")
    return f"nn.{text}"


def _own_tensors(module: nn.Module, place: str, stored: set[str]) -> list[str]:
    """Parameters and buffers outside of layers; those not in the weights' file are written out."""
    lines = []
    for name, parameter in module.named_parameters(recurse=False):
        lines.append(
            f"register_parameter({name!r}, nn.Parameter(torch.empty({tuple(parameter.shape)})))"
        )
    for name, buffer in module.named_buffers(recurse=False):
        kept = f"{place}.{name}".lstrip(".") in stored
        value = f"torch.empty({tuple(buffer.shape)})" if kept else _literal(buffer)
        lines.append(f"register_buffer({name!r}, {value}, persistent={kept})")
    return lines


def _literal(buffer: Tensor) -> str:
    if buffer.numel() > 1000:
        raise ValueError("it holds a large constant")
    return f"torch.tensor({buffer.tolist()!r})"


def rebuilt(text: str) -> Any:
    """Execute the text, to check that the network computes the same."""
    namespace: dict[str, Any] = {"__file__": "exported.py"}
    exec(compile(text, "<exported>", "exec"), namespace)
    return namespace["Network"]().eval()
