"""The style of all static figures, and how they are saved. No window and no pyplot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slimfl.errors import RequestError
from slimfl.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#5b6670",
    "axes.labelcolor": "#1d2329",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e7ea",
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
    "hatch.linewidth": 0.5,
    "figure.facecolor": "white",
}


def save(figure: Figure, path: Path) -> Path:
    """Write a figure as png, pdf or svg, by the path's suffix; reproducible byte for byte."""
    kind = path.suffix.removeprefix(".").lower()
    if kind not in ("png", "pdf", "svg"):
        raise RequestError(
            f"a figure cannot be written to {path}; end the name in .png, .pdf or .svg"
        )
    import matplotlib

    undated = {"png": None, "pdf": {"CreationDate": None}, "svg": {"Date": None}}[kind]
    with atomic_write(path) as temporary, matplotlib.rc_context({"svg.hashsalt": "slimfl"}):
        figure.savefig(temporary, format=kind, dpi=200, metadata=undated)
    return path


@contextmanager
def canvas(width: float, height: float) -> Iterator[tuple[Figure, Axes]]:
    """A figure with one set of axes in the common style; sizes in inches."""
    with grid(1, 1, width, height) as (figure, axes):
        yield figure, axes[0]


@contextmanager
def grid(
    rows: int, columns: int, width: float, height: float
) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure with several sets of axes in the common style."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(
        _STYLE
    ):  # without pyplot, which keeps figures alive and needs a screen
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, list(figure.subplots(rows, columns, squeeze=False).flat)
        _show_names_as_they_are(figure)


def _show_names_as_they_are(figure: Figure) -> None:
    """Read no dollar sign in titles, legends and notes as mathematics; a dataset may have it."""
    from matplotlib.legend import Legend
    from matplotlib.text import Text

    inside = [child for axes in (figure, *figure.axes) for child in axes.get_children()]
    legends = [text for child in inside if isinstance(child, Legend) for text in child.get_texts()]
    for text in (*legends, *(child for child in inside if isinstance(child, Text))):
        text.set_parse_math(False)
