"""The command line reference, written from the `slimfl` program itself."""

from __future__ import annotations

from typing import Any

from typer.main import get_command

from slimfl.cli.app import app


def text() -> str:
    """Every command with its arguments and options."""
    lines: list[str] = []
    for name, command in get_command(app).commands.items():
        for full, leaf in _leaves(f"slimfl {name}", command):
            lines += _command(full, leaf)
    return "\n".join(lines)


def _leaves(name: str, command: Any) -> list[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if not inner:
        return [(name, command)]
    return [leaf for key, sub in inner.items() for leaf in _leaves(f"{name} {key}", sub)]


def _command(name: str, command: Any) -> list[str]:
    params = [p for p in command.params if not getattr(p, "hidden", False)]
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
    if default is None or default is False or callable(default) or param.required:
        shown = ""
    else:
        shown = f"`{default}`"
    meaning = getattr(param, "help", None) or _fallback(param)
    return f"| {spelled} | {shown} | {' '.join(meaning.split())} |".replace("  ", " ")


def _fallback(param: Any) -> str:
    """Where the program has no help text because the name says it."""
    return MEANINGS.get(param.name, "")


MEANINGS = {
    "rounds": "Number of rounds.",
    "devices": "Number of devices.",
    "power_dbm": "Transmit power of a device.",
    "distance_m": "Distance between device and server.",
    "path_loss_exponent": "Exponent of the distance in the path loss.",
    "implementation_loss_db": "How far a real decoder stays behind the outage formula.",
    "seed": "Seed of the draws.",
    "dataset": "The dataset to deal out.",
    "name": "The dataset to fetch.",
    "repetitions": "How often each engine does the work.",
    "bits_per_parameter": "Bits that one parameter takes on the air.",
}
