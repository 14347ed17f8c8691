"""The reference, one page per room: every module of the package, found at build time."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from pathlib import Path

#: In the order in which an update passes them; what is not listed comes after.
ORDER = ("data", "devices", "nn", "training", "engines", "radio", "methods", "round", "runs",
         "results", "report", "flower", "export")  # fmt: skip
#: `experiment` has a page of its own for its keys; `cli` is the command line page.
ELSEWHERE = {"experiment", "rng", "errors", "cli", "_native"}


def write(folder: Path) -> None:
    """Write `folder/ROOM.md` for every room."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.md"):
        old.unlink()
    import slimfl

    found = {m.name for m in pkgutil.iter_modules(slimfl.__path__)} - ELSEWHERE
    rooms = [room for room in ORDER if room in found] + sorted(found - set(ORDER))
    for room in rooms:
        (folder / f"{room}.md").write_text(_page(room), encoding="utf-8")


def _page(room: str) -> str:
    name = f"slimfl.{room}"
    package = import_module(name)
    if not hasattr(package, "__path__"):
        return f"# {room}\n\n" + _automodule(name)
    lines = [f"# {room}", "", inspect.getdoc(package) or "", ""]
    for module in pkgutil.walk_packages(package.__path__, f"{name}."):
        if not module.name.rpartition(".")[2].startswith("_") and not _programs(module.name):
            # before autodoc reads a model: it changes the annotations of pydantic's BaseModel, and
            # models that are defined after that, such as fastapi's, fail
            import_module(module.name)
            lines += [f"## `{module.name}`", "", _automodule(module.name)]
    return "\n".join(lines)


def _automodule(name: str) -> str:
    return f"```{{eval-rst}}\n.. automodule:: {name}\n```\n"


def _programs(module: str) -> bool:
    """Programs that start Flower's servers import its internals, which cannot be read twice."""
    return ".flower.guard" in module
