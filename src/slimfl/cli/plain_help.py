r"""Commands with plain help, each option at most once, and suggestions.

typer writes `\[default: 1]` for rich to read as a bracket, whether rich prints it or not; and with
click 8.5 and later typer before 0.21, which Flower asks for, loses what arguments are for.
"""

import ast
import difflib
import inspect
import re
from collections.abc import Mapping
from importlib import import_module, util
from typing import Any, ClassVar

from click import Command, Context, NoSuchOption, Option, UsageError
from click.shell_completion import CompletionItem
from typer.core import TyperCommand, TyperGroup
from typer.models import ArgumentInfo

from slimfl.errors import RequestError

#: A default in words, which typer puts into redundant parentheses.
_IN_WORDS = re.compile(r"\[default: \((.*?)\)([;\]])")


class _OptionsOnce(Command):
    """A command that refuses an option with two values, of which click would take the last."""

    def make_parser(self, ctx: Context) -> Any:
        """A parser that sees every value of an option."""
        parser: Any = super().make_parser(ctx)
        single = [p for p in self.get_params(ctx) if isinstance(p, Option) and _takes_one_value(p)]
        for one in single:
            parser.add_option(
                one, [*one.opts, *one.secondary_opts], dest=one.name, action="append", nargs=1
            )
        parse = parser.parse_args

        def parse_once(args: list[str]) -> Any:
            try:
                found, rest, order = parse(args)
            except NoSuchOption as error:
                option = self._known_as(ctx, error.option_name)
                if option is None:
                    raise
                text = f"No such option {error.option_name!r}. Did you mean {option!r}?"
                raise UsageError(text, ctx) from None
            for one in single:
                values = found.get(one.name, ())
                if any(value != values[0] for value in values):
                    shown = " and as ".join(repr(value[:60]) for value in values[:2])
                    raise RequestError(f"{one.opts[-1]} is given twice, as {shown}; give it once")
                if values:
                    found[one.name] = values[0]
            return found, rest, order

        parser.parse_args = parse_once
        return parser

    def _known_as(self, ctx: Context, option: str) -> str | None:
        """What to write here for an option of another library; None if there is nothing."""
        from slimfl.experiment.short_names import meant, short_name

        key = meant(option)
        here = {name for one in self.get_params(ctx) for name in one.opts}
        short = f"--{short_name(key).replace('_', '-')}" if key else ""
        if short in here:
            return short
        return f"--set {key}=VALUE" if key and "--set" in here else None


def _takes_one_value(option: Option) -> bool:
    return not (option.multiple or option.is_flag or option.count) and option.nargs == 1


class PlainCommand(_OptionsOnce, TyperCommand):
    """A command whose help shows brackets correctly."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        for parameter in self.params:
            if parameter.param_type_name == "argument" and not parameter.help:
                parameter.help = _meant(self.callback, parameter.name)

    def format_arguments(self, ctx: Any, formatter: Any) -> None:
        """Nothing, as typer lists arguments among the options; click since 8.5 would do it here."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments and options with their help, under headings."""
        _format_parameters(self, ctx, formatter)


class PlainGroup(_OptionsOnce, TyperGroup):
    """A group of such commands."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of that name; a misspelt one gets one suggestion, not click's and typer's."""
        try:
            return super().resolve_command(ctx, args)
        except UsageError as error:
            said = error.message.partition(" Did you mean ")[0]
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), 1)
            way_on = f" Did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"{said}{way_on}", ctx) from None

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Options with their help, then the commands."""
        _format_parameters(self, ctx, formatter)
        self.format_commands(ctx, formatter)


#: Where the functions of commands are, as `module:function`, by name; a group has its help and its
#: own commands.
Places = Mapping[str, "str | tuple[str, Places]"]


class LazyGroup(PlainGroup):
    """A group that imports the module of a command when the command is called."""

    places: ClassVar[Places] = {}

    def list_commands(self, ctx: Context) -> list[str]:
        """The names in the order of the help."""
        return list(self.places)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """The command of that name, imported now."""
        place = self.places.get(cmd_name)
        if isinstance(place, tuple):
            inner = type("Inner", (LazyGroup,), {"places": place[1]})
            made: Command = inner(
                name=cmd_name, help=place[0], no_args_is_help=True, rich_markup_mode=None
            )
            return made
        if place is None:
            return None
        module, _, function = place.partition(":")
        found: Command = getattr(import_module(module), function)
        found.name = cmd_name
        return found

    def format_commands(self, ctx: Context, formatter: Any) -> None:
        """The commands with the first sentence of their help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _summary(place)) for name, place in self.places.items()])

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        """The names that begin so."""
        fits = [name for name in self.places if name.startswith(incomplete)]
        return [CompletionItem(name, help=_summary(self.places[name])) for name in fits]


def _summary(place: str | tuple[str, Places]) -> str:
    """The first line of a command's docstring, read without importing its module."""
    if isinstance(place, tuple):
        return place[0]
    module, _, function = place.partition(":")
    source: Any = util.find_spec(module)
    for node in ast.parse(source.loader.get_source(module)).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return (ast.get_docstring(node) or "").partition("\n")[0]
    return ""


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
    """The help text of an argument in the function behind a command."""
    annotation = inspect.signature(function).parameters[name].annotation
    notes = getattr(annotation, "__metadata__", ())
    return next((note.help for note in notes if isinstance(note, ArgumentInfo)), None)
