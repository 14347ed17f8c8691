"""The methods by name."""

from collections.abc import Iterable

from slimfl.errors import RequestError
from slimfl.federation.method import Method
from slimfl.federation.slimfl import SlimFL
from slimfl.federation.vanilla import Vanilla

#: The paper's name for running every width's Vanilla FL side by side: 0.5x and 1.0x.
VANILLA_ALL = "vanilla-1.5x"


def method_names(widths: tuple[float, ...]) -> list[str]:
    """The methods there are for a list of widths."""
    return ["slimfl", *(vanilla_name(width) for width in widths)]


def vanilla_name(width: float) -> str:
    """`vanilla-0.5x` for 0.5."""
    return f"vanilla-{width}x"


def method(name: str, widths: tuple[float, ...]) -> Method:
    """The method of that name."""
    if name == "slimfl":
        return SlimFL(len(widths))
    for index, width in enumerate(widths):
        if name == vanilla_name(width):
            return Vanilla(index, name)
    known = ", ".join([*method_names(widths), VANILLA_ALL])
    raise RequestError(
        f"there is no method {name!r} for these widths; choose from {known}, or pass one of your "
        "own in Python: slimfl.run(..., method=...) or slimfl.resume(..., method=...)"
    )


def expand(names: Iterable[str], widths: tuple[float, ...]) -> list[str]:
    """Replace `vanilla-1.5x` by its parts, which are runs of their own, each stopping by itself."""
    expanded: list[str] = []
    for name in names:
        parts = [vanilla_name(w) for w in widths] if name == VANILLA_ALL else [name]
        expanded += [part for part in parts if part not in expanded]
    return expanded
