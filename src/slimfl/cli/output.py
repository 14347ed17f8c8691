"""How commands speak: results on standard output, everything else on standard error."""

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on standard output, nothing else.")
]
On = Annotated[
    str | None,
    typer.Option(help="Runs side by side: local (one a core), ray, or ray://HOST:PORT."),
]


def show(*renderables: "RenderableType") -> None:
    """Print a result for a person."""
    from rich.console import Console

    # a file or a pipe has no width; tables stay whole there
    console = Console() if sys.stdout.isatty() else Console(width=110)
    for renderable in renderables:
        console.print(renderable)


def show_json(document: Any) -> None:
    """Print a result for a program."""
    print(json.dumps(document, indent=2, allow_nan=False, default=str))


def aside() -> "Console":
    """Where progress and remarks go."""
    from rich.console import Console

    return Console(stderr=True)


def finite(value: float) -> float | None:
    """JSON has no infinity: such a value is null."""
    return value if abs(value) != float("inf") and value == value else None


def duration(seconds: float) -> str:
    """A time for a person.

    >>> duration(40), duration(90 * 60), duration(150)
    ('1 min', '1 h 30 min', '2 min')
    """
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min"


def floats(text: str | None, option: str) -> tuple[float, ...] | None:
    """The numbers in `0.8,0.2`."""
    from slimfl.errors import RequestError

    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise RequestError(f"{option} takes numbers separated by commas, not {text!r}") from None
