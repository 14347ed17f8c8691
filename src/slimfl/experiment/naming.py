"""One way to name a part: a built-in name, or `package.module:Name` of the user's own.

A name in a file may come from a stranger, and importing a module runs its code. So only trusted
modules are imported: those allowed by `--trust`, by `slimfl.trust`, or typed by the user. What was
imported is checked before it is called. A trusted module may also be in the current folder; an
installed one of the same name wins. The folder itself is never searched for anything else: it may
be a stranger's, and libraries look for many optional modules.

The list of trusted modules is an environment variable, which worker processes inherit and run
folders cannot set.
"""

import importlib
import importlib.abc
import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from slimfl.errors import RequestError

VARIABLE = "SLIMFL_TRUST"

_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def trusted() -> tuple[str, ...]:
    """The modules and packages whose code may be imported by name in this process."""
    return tuple(filter(None, os.environ.get(VARIABLE, "").split(",")))


def trust(*modules: str) -> None:
    """Allow this process, and processes it starts, to import these modules by name.

    A package covers the modules inside it.
    """
    for module in modules:
        if not isinstance(module, str) or not _MODULE.fullmatch(module):
            raise RequestError(
                f"--trust takes the name of a module, such as package.module, not {module!r}"
            )
    if modules:
        os.environ[VARIABLE] = ",".join(dict.fromkeys([*trusted(), *modules]))


@contextmanager
def trusting(modules: Iterable[str]) -> Iterator[None]:
    """Trust more modules inside the block."""
    before = os.environ.get(VARIABLE)
    try:
        trust(*modules)
        yield
    finally:
        if before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = before


def module_of(name: object) -> str | None:
    """The module in `package.module:Name`; None for any other value."""
    if not isinstance(name, str):
        return None
    module, colon, _ = name.partition(":")
    return module if colon and _MODULE.fullmatch(module) else None


def resolve(
    kind: str, name: str, builtin: Mapping[str, Any], fits: Callable[[type], bool]
) -> Callable[..., Any]:
    """The part of that name, to be called with its options; a wrong name is a `RequestError`.

    Args:
        kind: What the part is, for messages: `model`.
        name: A built-in name, or `package.module:Name`.
        builtin: The built-in parts.
        fits: True for classes of such parts. A function fits if a trusted module defines it.
    """
    if name in builtin:
        found: Callable[..., Any] = builtin[name]
        return found
    module = module_of(name)
    if module is None:
        known = ", ".join(builtin)
        raise RequestError(
            f"there is no {kind} {name!r}; choose {known} or your own, package.module:Name"
        )
    if _in_standard_library(module):
        raise RequestError(
            f"{kind} {name!r} cannot be in the standard library; name a module of your own"
        )
    if not _is_trusted(module):
        raise RequestError(
            f"{kind} {name!r} is not built in, and using it runs the code of {module}; if you "
            f"trust that code, add --trust {module} (in Python: slimfl.trust({module!r}))"
        )
    part = _import(kind, name)
    # check before the call: a C function or a bound method could be anything
    if not (fits(part) if isinstance(part, type) else isinstance(part, FunctionType)):
        raise RequestError(f"{kind} {name!r} is not a class or function that makes a {kind}")
    home = getattr(part, "__module__", None)
    if not isinstance(home, str) or _in_standard_library(home) or not _is_trusted(home):
        raise RequestError(
            f"{kind} {name!r} is defined in {home}, not in {module}; use the module that defines it"
        )
    made: Callable[..., Any] = part
    return made


def _is_trusted(module: str) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in trusted())


def _in_standard_library(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


def _import(kind: str, name: str) -> Any:
    module, _, attribute = name.partition(":")
    if _TRUSTED_HERE not in sys.meta_path:
        sys.meta_path.append(_TRUSTED_HERE)
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as error:  # the module may raise anything while it is imported
        missing = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
        if missing and f"{module}.".startswith(f"{missing}."):
            raise RequestError(
                f"{kind} {name!r} cannot be imported: there is no module {missing!r} among the "
                f"installed packages, in PYTHONPATH or in the current folder{_here()}; go to the "
                "folder that contains it, or install it"
            ) from error
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        if missing and not _is_trusted(missing) and _in_current_folder(missing) is not None:
            reason += f"; the current folder has {missing}: if you trust it, add --trust {missing}"
        raise RequestError(f"{kind} {name!r} cannot be imported ({reason})") from error


class _TrustedHere(importlib.abc.MetaPathFinder):
    """Finds trusted modules in the current folder, after all other places, and nothing else."""

    def find_spec(
        self, fullname: str, path: object = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        wanted = {one.partition(".")[0] for one in trusted()}
        if path is not None or fullname not in wanted or _in_standard_library(fullname):
            return None
        return _in_current_folder(fullname)


_TRUSTED_HERE = _TrustedHere()


def _in_current_folder(module: str) -> ModuleSpec | None:
    try:
        return PathFinder.find_spec(module, [str(Path.cwd())])
    except OSError:  # the folder was deleted
        return None


def _here() -> str:
    """The current folder, for a message."""
    try:
        return f" ({Path.cwd()})"
    except OSError:
        return ""


#: The options of a part as JSON text: hashable, and the same in every process.
Options = str

NO_OPTIONS: Options = "{}"


def as_options(options: Mapping[str, Any]) -> Options:
    """The options as JSON text."""
    return json.dumps(dict(options), sort_keys=True)


def construct(
    kind: str,
    name: str,
    maker: Callable[..., Any],
    options: Mapping[str, Any],
    offered: Mapping[str, Any] | None = None,
    *,
    key: str,
) -> Any:
    """Call what `resolve` found.

    Args:
        kind: What the part is, for messages: `model`.
        name: Its name in the configuration.
        maker: The class or function.
        options: Its keyword arguments.
        offered: Further arguments, of which it gets those that it takes.
        key: The key of the options, for messages.
    """
    try:
        known = inspect.signature(maker).parameters
    except (TypeError, ValueError):
        raise RequestError(
            f"{kind} {name!r} is not a function or class that can be called"
        ) from None
    given = {key: value for key, value in (offered or {}).items() if key in known}
    try:
        return maker(**given | dict(options))
    except RequestError:
        raise
    except Exception as error:  # a maker may raise anything on unexpected options
        reason = " ".join(str(error).split())
        raise RequestError(f"{kind} {name!r} does not take {key}: {reason}") from error
