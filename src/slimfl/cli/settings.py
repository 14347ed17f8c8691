"""Commands with options made of the keys of an experiment: name, help, default and completion."""

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import click
import typer
from typer.core import TyperOption

from slimfl import experiment as config
from slimfl.cli.output import Reply, give
from slimfl.cli.plain_help import PlainCommand
from slimfl.errors import RequestError
from slimfl.experiment import Experiment
from slimfl.experiment.keys import KEYS, choices_of, default_of
from slimfl.experiment.naming import module_of, trusting
from slimfl.experiment.short_names import SHORT_NAMES

Source = Annotated[
    Path | None, typer.Argument(help="A TOML file to start from.", show_default="the defaults")
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set any other key, such as radio.noise_dbm=-40 (`slimfl keys` lists them); may be "
        "repeated.",
    ),
]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        metavar="MODULE",
        help="Allow importing parts named package.module:Name from this module or package, which "
        "runs its code; may be repeated.",
        show_default=False,
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder with the dataset.", show_default="search, then download"),
]
Speed = Annotated[
    float | None,
    typer.Option(
        "--macs-per-s",
        help="Multiply-adds per second of the device; all presets but horowitz-45nm need it.",
        show_default="none",
    ),
]

#: The name of the option of every key that has a short name.
_SHORT = {key: name for name, key in SHORT_NAMES.items()}


class KeyCommand(PlainCommand):
    """A command with options for keys, each of which stands for `--set KEY=VALUE`."""

    keys: dict[str, str]
    """The key of every such option."""

    def invoke(self, ctx: click.Context) -> None:
        """Call the function and print its answer, if it has not done so."""
        options = {key: ctx.params.pop(name) for name, key in self.keys.items()}
        given = [f"{key}={value}" for key, value in options.items() if value is not None]
        if given:
            ctx.params["set_"] = [*(ctx.params["set_"] or ()), *given]
        ctx.meta["json"] = ctx.params.pop("json")
        answer = super().invoke(ctx)
        if isinstance(answer, Reply):
            give(answer)


def command(*keys: str, **defaults: str) -> Callable[[Callable[..., Any]], KeyCommand]:
    """Make a command of a function that returns an `Reply`; it also takes `--json`.

    Args:
        *keys: Dotted keys that get an option of their own.
        **defaults: What the help says instead of a key's default, by the name of the option.
    """
    names = {_SHORT.get(key, key.rpartition(".")[2]): key for key in keys}

    def make(function: Callable[..., Any]) -> KeyCommand:
        app = typer.Typer(
            add_completion=False,
            rich_markup_mode=None,
            pretty_exceptions_enable=False,
            context_settings={"help_option_names": ["-h", "--help"]},
        )
        app.command(cls=KeyCommand)(function)
        made = typer.main.get_command(app)
        assert isinstance(made, KeyCommand)
        made.keys = names
        arguments = sum(one.param_type_name == "argument" for one in made.params)
        made.params[arguments:arguments] = [_option(n, key, defaults) for n, key in names.items()]
        told = "Print only one JSON document on standard output."
        made.params.append(TyperOption(param_decls=["--json"], is_flag=True, help=told))
        return made

    return make


def _option(name: str, key: str, defaults: dict[str, str]) -> TyperOption:
    field = KEYS[key]
    words = choices_of(field.annotation)
    default = default_of(field)
    shown = default if isinstance(default, str) else json.dumps(default)
    plain = " ".join((field.description or "").replace("`", "").split())
    first = re.split(r"\. |; in Python", plain)[0]
    return TyperOption(
        param_decls=[name, f"--{name.replace('_', '-')}"],
        type=str,
        metavar="|".join(words) if 0 < len(words) < 5 else None,
        help=f"{first.rstrip('.')}.",
        show_default=defaults.get(name, "absent" if default is None else shown),
        autocompletion=lambda ctx, args, incomplete: [w for w in words if w.startswith(incomplete)],
    )


def described(source: Path | None, texts: Iterable[str] | None) -> Experiment:
    """The one experiment that a file and `--set` describe, with its names trusted."""
    given = config.asked(texts or (), {})
    allow((), config.typed_names(given))
    experiments = config.load(source, given)
    if len(experiments) != 1:
        raise RequestError(f"this describes {len(experiments)} experiments; give one")
    return experiments[0]


def allow(modules: Iterable[str] | None, typed: Iterable[str] = ()) -> None:
    """Trust these modules, and those of names that the user typed, until the command ends."""
    named = filter(None, map(module_of, typed))
    click.get_current_context().with_resource(trusting([*(modules or ()), *named]))
