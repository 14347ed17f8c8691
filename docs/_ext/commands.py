"""The command line reference, written from the `slimfl` program itself."""

from __future__ import annotations

from typing import Any

from click import Context, Group
from typer.main import get_command

from slimfl.cli.app import app


def text() -> str:
    """Every command with its arguments and options."""
    lines: list[str] = []
    for name, command in _leaves("slimfl", get_command(app)):
        lines += _command(name, command)
    return "\n".join(lines)


def _leaves(name: str, command: Any) -> list[tuple[str, Any]]:
    if not isinstance(command, Group):
        return [(name, command)]
    context = Context(command)
    inner = {key: command.get_command(context, key) for key in command.list_commands(context)}
    return [leaf for key, sub in inner.items() for leaf in _leaves(f"{name} {key}", sub)]


def _command(name: str, command: Any) -> list[str]:
    params = [p for p in command.get_params(Context(command)) if p.name != "help"]
    arguments = [p for p in params if p.param_type_name == "argument"]
    options = [p for p in params if p.param_type_name == "option"]
    usage = [name, *map(_argument, arguments), "[OPTIONS]" if options else ""]
    lines = [
        f"## `{name}`",
        "",
        " ".join((command.help or "").split()),
        "",
        "```text",
        " ".join(part for part in usage if part),
        "```",
        "",
    ]
    if params:
        lines += ["| argument or option | default | meaning |", "|---|---|---|"]
        lines += [_row(param) for param in (*arguments, *options)]
        lines.append("")
    return lines


def _argument(param: Any) -> str:
    name = (param.metavar or param.name).upper().rstrip(".")
    name += "..." if param.nargs == -1 else ""
    return name if param.required else f"[{name}]"


def _row(param: Any) -> str:
    if param.param_type_name == "argument":
        spelled = f"`{_argument(param)}`"
    else:
        spelled = f"`{param.opts[-1]}`"
    default = param.default
    if isinstance(param.show_default, str):  # said in words
        shown = param.show_default
    elif default is None or default is False or callable(default) or param.required:
        shown = ""
    else:
        shown = f"`{default}`"
    meaning = param.help or ""
    return f"| {spelled} | {shown} | {' '.join(meaning.split())} |".replace("  ", " ")
