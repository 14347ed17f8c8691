"""The shell of every HTML page: one file that needs neither a server nor a network.

Templates escape all text. A content security policy forbids the page to load anything; scripts may
run only on a page that contains some.
"""

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


def asset(name: str) -> str:
    """The text of a file that is installed beside the code."""
    return resources.files("slimfl.report.pages").joinpath(name).read_text(encoding="utf-8")


def charts() -> str:
    """The scripts that draw: the vendored library, and ours over it."""
    texts = (
        asset(n).replace("</script", "<\\/script") for n in ("vendor/plot.min.js", "charts.js")
    )
    return "".join(f"<script>{text}</script>\n" for text in texts)
