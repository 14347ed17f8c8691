"""Packages that import a public name when it is first used.

Importing such a package, or a module in it, imports none of the others: reading run folders does
not wait for torch. No module of such a package may have the name of a public function, because
importing the module would replace the function in the package.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, names: Mapping[str, Sequence[str]], packages: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and the `__dir__` of a package, given the public names of each module.

    `packages` are those inside it that it offers, too.
    """
    homes = {name: module for module, listed in names.items() for name in listed}

    def first_use(name: str) -> Any:
        if name in homes:
            return getattr(import_module(homes[name]), name)
        if name in packages:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def listed_names() -> list[str]:
        # for the completion of names in a notebook
        return sorted({*vars(sys.modules[package]), *homes, *packages})

    return first_use, listed_names
