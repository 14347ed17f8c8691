"""Packages that import a public name when it is first used.

Importing such a package, or a module in it, imports none of the others: reading run folders does
not wait for torch. No module of such a package may have the name of a public function, because
importing the module would replace the function in the package.
"""

import ast
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, the `__dir__` and the `__all__` of a package.

    Its public names are those that it imports for type checkers, so they are listed once::

        if TYPE_CHECKING:
            from slimfl.nn.adapt import slimmable as slimmable
        else:
            __getattr__, __dir__, __all__ = lazy(__name__, __file__)

    Args:
        package: The package's `__name__`.
        file: Its `__file__`, which is read.
    """
    names: dict[str, list[str]] = {}
    for block in ast.parse(Path(file).read_text(encoding="utf-8")).body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for found in block.body:
                if isinstance(found, ast.ImportFrom) and found.module:
                    names.setdefault(found.module, []).extend(one.name for one in found.names)
    return *lazy_names(package, names), sorted(name for listed in names.values() for name in listed)


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
