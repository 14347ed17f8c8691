"""Pictures for light and for dark pages in one file.

Background, text and grey lines of an SVG follow `prefers-color-scheme`, which a browser answers
inside an `<img>` too. Colours that carry a meaning stay.
"""

from __future__ import annotations

import re
from pathlib import Path

from matplotlib.figure import Figure

from slimfl.report.figures.drawing import save as save_as_drawn

#: What is drawn in these colours is text, axes or shade; beside them what a dark page needs.
ON_DARK = {
    "#000000": "#e4e4e4",
    "#1d2329": "#e4e4e4",
    "#333333": "#d0d0d0",
    "#5b6670": "#aab4be",
    "#e4e7ea": "#343a40",
    "#cccccc": "#4a4a4a",
}


def save(figure: Figure, path: Path) -> None:
    """Write an SVG without a background, readable on white and on black."""
    figure.patch.set_visible(False)
    for ax in figure.axes:
        ax.patch.set_visible(False)
        if legend := ax.get_legend():
            legend.get_frame().set_visible(False)
    save_as_drawn(figure, path)
    path.write_text(follow_mode(path.read_text(encoding="utf-8")), encoding="utf-8")


def follow_mode(svg: str) -> str:
    """The picture with a style for dark pages."""
    rules = [f"svg {{ fill: {ON_DARK['#000000']} }}"]
    rules += [
        f'[style*="{kind}: {light}"] {{ {kind}: {dark} !important }}'
        for light, dark in ON_DARK.items()
        for kind in ("fill", "stroke")
        if f"{kind}: {light}" in svg
    ]
    style = "<style>@media (prefers-color-scheme: dark) {" + " ".join(rules) + "}</style>\n"
    svg = re.sub(r" <metadata>.*?</metadata>\n", "", svg, count=1, flags=re.DOTALL)
    return re.sub(r"(<svg [^>]*>\n)", lambda found: found[1] + style, svg, count=1)
