"""The reference, one page per room: every module of the package, found at build time."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from pathlib import Path

#: `experiment` has a page of its own for its keys; `cli` is the command line page.
ELSEWHERE = {"experiment", "rng", "errors", "cli", "_native"}
AUTOMODULE = "```{{eval-rst}}\n.. automodule:: {}\n```\n"


def write(folder: Path) -> None:
    """Write `folder/ROOM.md` for every room."""
    import slimfl

    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.md"):
        old.unlink()
    for room in {each.name for each in pkgutil.iter_modules(slimfl.__path__)} - ELSEWHERE:
        (folder / f"{room}.md").write_text(_page(room), encoding="utf-8")


def _page(room: str) -> str:
    package = import_module(f"slimfl.{room}")
    if not hasattr(package, "__path__"):
        return f"# {room}\n\n" + AUTOMODULE.format(package.__name__)
    lines = [f"# {room}", "", inspect.getdoc(package) or "", ""]
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        # programs that start Flower's servers import its internals, which cannot be read twice
        private = module.name.rpartition(".")[2].startswith("_")
        if not private and ".flower.guard" not in module.name:
            # before autodoc reads a model: it changes the annotations of pydantic's BaseModel, and
            # models that are defined after that, such as fastapi's, fail
            import_module(module.name)
            lines += [f"## `{module.name}`", "", AUTOMODULE.format(module.name)]
    return "\n".join(lines)
