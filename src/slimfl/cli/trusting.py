"""`--trust`: which modules besides the package's own a command may import by name."""

from collections.abc import Iterable
from typing import Annotated

import typer

Trust = Annotated[
    list[str] | None,
    typer.Option(
        metavar="MODULE",
        help="Allow importing parts named package.module:Name from this module or package, which "
        "runs its code; may be repeated.",
        show_default=False,
    ),
]


def allow(modules: Iterable[str] | None, typed: Iterable[str] = ()) -> None:
    """Trust these modules, and those of names that the user typed, until the command ends."""
    import click

    from slimfl.experiment.naming import module_of, trusting

    named = filter(None, map(module_of, typed))
    click.get_current_context().with_resource(trusting([*(modules or ()), *named]))
