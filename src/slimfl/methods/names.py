"""The methods by name."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from slimfl.errors import RequestError
from slimfl.experiment.naming import construct, module_of, resolve
from slimfl.methods.fjord import FjORD, FjORDWithDistillation
from slimfl.methods.heterofl import HeteroFL, SHeteroFL
from slimfl.methods.method import Method
from slimfl.methods.rolling import FederatedDropout, FedRolex
from slimfl.methods.slimfl import SlimFL
from slimfl.methods.split_mix import SplitMix
from slimfl.methods.usnet import USNet
from slimfl.methods.vanilla import Vanilla

#: The Vanilla FL of every width; accepted for any widths.
VANILLA_ALL = "vanilla-all"

#: The paper's name for it, after the sum of its widths 0.5 and 1.0.
VANILLA_PAPER = "vanilla-1.5x"


#: Rival methods for devices of unequal strength.
_RIVALS: tuple[type[HeteroFL], ...] = (
    SHeteroFL, HeteroFL, FjORD, FjORDWithDistillation, FedRolex, FederatedDropout, SplitMix, USNet,
)  # fmt: skip
RIVALS = {one.name: one for one in _RIVALS}

#: Only devices that can train the full width take part; the same as Vanilla FL at full width.
EXCLUSIVE = "exclusive"

#: Names as in the methods' papers.
_TITLES = {SlimFL.name: SlimFL.title, EXCLUSIVE: "Exclusive (full width only)"}
_TITLES |= {one.name: one.title for one in _RIVALS}

#: What methods of other libraries are here.
ELSEWHERE = {
    "fedavg": "vanilla-1.0x",
    "fedsgd": "vanilla-1.0x with training.steps=1",
    "fedprox": "vanilla-1.0x with training.proximal_mu",
    "fedavgm": 'vanilla-1.0x with server.optimiser="momentum"',
    "fedadam": 'vanilla-1.0x with server.optimiser="adam"',
    "fedopt": "vanilla-1.0x with server.optimiser",
    "vanilla": "vanilla-1.0x, or vanilla-all for every width",
}


def method_names(widths: tuple[float, ...]) -> list[str]:
    """The available methods for a list of widths."""
    return ["slimfl", *(vanilla_name(width) for width in widths), EXCLUSIVE, *RIVALS]


def vanilla_name(width: float) -> str:
    """`vanilla-0.5x` for 0.5."""
    return f"vanilla-{width}x"


def title(method: str) -> str:
    """A method's name as the paper prints it.

    >>> title("slimfl"), title("vanilla-0.5x"), title("vanilla-all"), title("fjord")
    ('SlimFL', 'Vanilla FL-0.5x', 'Vanilla FL-all', 'FjORD')
    """
    if method in _TITLES:
        return _TITLES[method]
    if method.startswith("vanilla-"):
        return "Vanilla FL-" + method.removeprefix("vanilla-")
    return method


def vanilla_all_name(widths: tuple[float, ...]) -> str:
    """The name for the Vanilla FL of all widths: the paper's name for the paper's widths."""
    return VANILLA_PAPER if widths == (0.5, 1.0) else VANILLA_ALL


def method(
    name: str,
    widths: tuple[float, ...],
    missing: str = "keep",
    options: Mapping[str, Any] | None = None,
) -> Method:
    """The method of that name: a built-in one, or `package.module:Name` of a trusted module."""
    if name == EXCLUSIVE:
        return Vanilla(len(widths) - 1, name)
    for index, width in enumerate(widths):
        if name == vanilla_name(width):
            return Vanilla(index, name)
    if name == "slimfl":
        return SlimFL(widths, missing)
    if name in RIVALS:
        return RIVALS[name](widths, missing)
    if module_of(name) is None:
        known = ", ".join([*method_names(widths), vanilla_all_name(widths)])
        here = ELSEWHERE.get(name.lower().replace("-", "").replace("_", ""))
        hint = f"; here it is {here}" if here else ""
        raise RequestError(
            f"there is no method {name!r} for these widths{hint}; choose from {known}, name your "
            "own as package.module:Name, or pass it in Python: slimfl.Experiment(method=...)"
        )
    maker = resolve("method", name, {}, lambda made: hasattr(made, "merge"))
    made: Method = construct(
        "method",
        name,
        maker,
        options or {},
        {"widths": widths, "missing": missing, "name": name},
        key="method_options",
    )
    return made


def expand(names: Iterable[str], widths: tuple[float, ...]) -> list[str]:
    """Replace `vanilla-all` by its parts, which are separate runs.

    `vanilla-1.5x` is the same if the widths sum to 1.5, and refused otherwise.
    """
    expanded: list[str] = []
    for name in names:
        if name == VANILLA_PAPER and not math.isclose(sum(widths), 1.5):
            raise RequestError(
                f"{VANILLA_PAPER} needs widths that sum to 1.5, but these sum to {sum(widths):g}; "
                f"use {VANILLA_ALL}"
            )
        every = name in (VANILLA_ALL, VANILLA_PAPER)
        parts = [vanilla_name(w) for w in widths] if every else [name]
        expanded += [part for part in parts if part not in expanded]
    return expanded
