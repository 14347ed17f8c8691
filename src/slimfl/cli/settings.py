"""Options made of the keys of an experiment: name, help, default and completion."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from click import Context
from typer.core import TyperOption

from slimfl.cli.plain_help import PlainCommand

if TYPE_CHECKING:
    from slimfl.experiment import Experiment

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


def with_settings(*keys: str, **defaults: str) -> type[PlainCommand]:
    """A command with an option for each of these keys, which stands for `--set KEY=VALUE`.

    Args:
        *keys: Dotted keys; none for all that have a short name.
        **defaults: What the help says instead of a key's default, by the name of the option.
    """

    class Command(PlainCommand):
        def get_params(self, ctx: Context) -> list[Any]:
            params = super().get_params(ctx)
            if not hasattr(self, "_made"):
                self._made = [_option(name, key, defaults) for name, key in _named(keys)]
            arguments = sum(one.param_type_name == "argument" for one in params)
            return [*params[:arguments], *self._made, *params[arguments:]]

        def invoke(self, ctx: Context) -> Any:
            given = [
                f"{key}={value}"
                for name, key in _named(keys)
                if (value := ctx.params.pop(name, None)) is not None
            ]
            ctx.params["set_"] = [*(ctx.params["set_"] or ()), *given]
            return super().invoke(ctx)

    return Command


def _named(keys: tuple[str, ...]) -> list[tuple[str, str]]:
    """The options with their keys."""
    from slimfl.experiment.short_names import SHORT_NAMES

    short = {key: name for name, key in SHORT_NAMES.items()}
    return [(short.get(key, key.rpartition(".")[2]), key) for key in keys or short]


def _option(name: str, key: str, defaults: dict[str, str]) -> TyperOption:
    import json

    from slimfl.experiment.mistakes import choices_of, field_of
    from slimfl.experiment.reference import default_of

    field = field_of(key)
    assert field is not None, key
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


def described(source: Path | None, texts: Iterable[str] | None) -> "Experiment":
    """The one experiment that a file and `--set` describe, with its names trusted."""
    from slimfl import experiment as config
    from slimfl.errors import RequestError

    given = config.asked(texts or (), {})
    allow((), config.typed_names(given))
    experiments = config.load(source, given)
    if len(experiments) != 1:
        raise RequestError(f"this describes {len(experiments)} experiments; give one")
    return experiments[0]


def allow(modules: Iterable[str] | None, typed: Iterable[str] = ()) -> None:
    """Trust these modules, and those of names that the user typed, until the command ends."""
    import click

    from slimfl.experiment.naming import module_of, trusting

    named = filter(None, map(module_of, typed))
    click.get_current_context().with_resource(trusting([*(modules or ()), *named]))
