"""Packages that import a public name when it is first used.

Importing such a package, or a module in it, imports none of the others: reading run folders does
not wait for torch. No module of such a package may have the name of a public function, because
importing the module would replace the function in the package.
"""

import ast
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any


def public_names(
    package: str, file: str, packages: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, the `__dir__` and the `__all__` of a package.

    Its public names are those that it imports for type checkers, so they are listed once::

        if TYPE_CHECKING:
            from slimfl.nn.adapt import slimmable as slimmable
        else:
            __getattr__, __dir__, __all__ = public_names(__name__, __file__)

    Args:
        package: The package's `__name__`.
        file: Its `__file__`, which is read.
        packages: Those inside it that it offers, too.
    """
    homes: dict[str, str] = {}
    for block in ast.parse(Path(file).read_text(encoding="utf-8")).body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for found in block.body:
                if isinstance(found, ast.ImportFrom) and found.module:
                    homes |= {one.name: found.module for one in found.names}

    def first_use(name: str) -> Any:
        if name in homes:
            return getattr(import_module(homes[name]), name)
        if name in packages:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def listed_names() -> list[str]:
        # for the completion of names in a notebook
        return sorted({*vars(sys.modules[package]), *homes, *packages})

    return first_use, listed_names, sorted(homes)
