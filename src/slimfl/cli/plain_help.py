r"""Help as plain text, where typer's own is made for rich.

typer writes `\[default: 1]` for rich to read as a bracket, whether rich prints it or not; and with
click 8.5 and later typer before 0.21, which Flower asks for, loses what arguments are for.
"""

import inspect
import re
from typing import Any

from typer.core import TyperCommand, TyperGroup
from typer.models import ArgumentInfo

#: A default that is said in words stands in parentheses that say nothing more.
_IN_WORDS = re.compile(r"\[default: \((.*?)\)([;\]])")


class PlainCommand(TyperCommand):
    """A command whose help has brackets where brackets are meant."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        for parameter in self.params:
            if parameter.param_type_name == "argument" and not parameter.help:
                parameter.help = _meant(self.callback, parameter.name)

    def format_arguments(self, ctx: Any, formatter: Any) -> None:
        """Nothing: click since 8.5 would list them here, typer does so among the options."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments and options with their help, under headings."""
        _format_parameters(self, ctx, formatter)


class PlainGroup(TyperGroup):
    """A group of such commands."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Options with their help, then the commands."""
        _format_parameters(self, ctx, formatter)
        self.format_commands(ctx, formatter)


def _format_parameters(command: Any, ctx: Any, formatter: Any) -> None:
    headings: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for parameter in command.get_params(ctx):
        argument = parameter.param_type_name == "argument"
        record = parameter.get_help_record(ctx)
        if record is not None:
            name, text = record
            text = _IN_WORDS.sub(r"[default: \1\2", text.replace("\\[", "["))
            headings["Arguments" if argument else "Options"].append((name, text))
    for heading, rows in headings.items():
        if rows:
            with formatter.section(heading):
                formatter.write_dl(rows)


def _meant(function: Any, name: Any) -> str | None:
    """What the function behind a command says that an argument is for."""
    annotation = inspect.signature(function).parameters[name].annotation
    notes = getattr(annotation, "__metadata__", ())
    return next((note.help for note in notes if isinstance(note, ArgumentInfo)), None)
