"""The shell of every HTML page: one file that needs neither a server nor a network.

Templates escape all text. A content security policy forbids the page to load anything; scripts may
run only on a page that contains some.
"""

from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import ChainableUndefined, Environment, PackageLoader
from markupsafe import Markup


@cache
def _templates() -> Environment:
    loader = PackageLoader("slimfl.report.pages", "templates")
    return Environment(loader=loader, autoescape=True, undefined=ChainableUndefined,
                       trim_blocks=True, lstrip_blocks=True)  # fmt: skip


def render(template: str, **values: Any) -> Markup:
    """A template of this package with these values."""
    return Markup(_templates().get_template(template).render(values))


def page_shell(
    *,
    kind: str,
    title: str,
    subtitle: str,
    contents: Iterable[tuple[str, str]],
    main: str,
    css: str = "",
    scripts: str = "",
) -> str:
    """A complete page.

    Args:
        kind: The kind of page, shown above the title.
        title: Plain text.
        subtitle: Plain text.
        contents: The key of every section and the HTML of its link.
        main: The sections as HTML.
        css: Styles of this page, after the common ones.
        scripts: Script elements, at the end.
    """
    return render(
        "page.html",
        kind=kind,
        title=title,
        subtitle=subtitle,
        contents=list(contents),
        main=main,
        css=asset("slimfl.report.pages", "page.css") + css,
        scripts=scripts,
    )


def section(key: str, title: str, html: str, kind: str = "") -> str:
    """A section under its heading; the title is HTML."""
    return render("section.html", key=key, title=title, html=html, kind=kind)


def asset(package: str, name: str) -> str:
    """The text of a file that is installed beside the code."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def charts() -> str:
    """The scripts that draw: the vendored library, and ours over it."""
    parts = ("vendor/plot.min.js", "charts.js")
    texts = (asset("slimfl.report.pages", name).replace("</script", "<\\/script") for name in parts)
    return "".join(f"<script>{text}</script>\n" for text in texts)
