"""The script that draws plots in a page: no dependency, a few files, one closure.

It defines `slimflCharts.mount(element, plot, theme, name)`; `slimfl.report.pages.plots` says what a
plot is. Plots are SVG, so a downloaded file is what the page shows.
"""

from importlib import resources

#: In this order: each part uses those before it.
_PARTS = ("basics", "axes", "curves", "bars", "heat", "legend", "files", "mount")


def script() -> str:
    """The whole script."""
    folder = resources.files(__name__)
    parts = [folder.joinpath(f"{name}.js").read_text(encoding="utf-8") for name in _PARTS]
    return (
        '"use strict";\nconst slimflCharts = (() => {\n'
        + "\n".join(parts)
        + "return { mount };\n})();\n"
    )
