"""Sphinx settings. The build reads nothing from the network.

The parts of the pages that come from code and results are written in place by docs/fragments.py.
"""

import re
import sys
from importlib.metadata import version as version_of
from pathlib import Path

from sphinx.ext.napoleon import GoogleDocstring

here = Path(__file__).parent
sys.path[:0] = [str(here / "_ext"), str(here.parent)]

import rooms  # noqa: E402
import tutorials  # noqa: E402

project = "slimfl"
author = copyright = "The SlimFL maintainers"
release = version = version_of("slimfl")

extensions = [
    "myst_parser",
    "mathtext_svg",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx.ext.doctest",
]
source_suffix = {".md": "markdown"}
default_role = "code"
exclude_patterns = ["_build", "results"]
nitpicky = True
# Types of other projects: their inventories would have to be fetched.
nitpick_ignore_regex = [
    ("py:.*", r"(torch|numpy|np|nn|pandas|pydantic|pathlib|collections|typing|rich|types)\..*"),
    ("py:.*", r"(asyncio|flwr|markupsafe|onnx|onnxruntime|psutil|ray|string|uvicorn)\..*"),
    ("py:.*", r"(Path|Any|Literal|Self|Tensor|NDArray|ArrayLike|Figure|DataFrame|Axes|Table)"),
    ("py:.*", r"(NoneType|Grid|array)"),
    ("py:.*", r"slimfl\..*\.([A-Z]|Plain)"),  # type variables
    ("py:.*", r"(annotated_types\.|FieldInfo|[GL]e$|1e\+60).*"),  # limits of a record's fields
    ("py:.*", r"(Gt|(Min|Max)Len|AllowInfNan|_PydanticGeneralMetadata)"),  # and of a manifest's
]

myst_enable_extensions = ["dollarmath", "deflist", "colon_fence", "attrs_inline", "fieldlist"]
myst_heading_anchors = 3
html_math_renderer = "mathtext"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True}
autodoc_preserve_defaults = True

html_theme = "furo"
html_title = f"slimfl {release}"
html_static_path = ["_static"]
html_css_files = ["slimfl.css"]
html_show_copyright = False
pygments_style = "friendly"
pygments_dark_style = "monokai"

LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((\.\./)+src/(?P<module>slimfl/[\w/]+)\.py\)")

rooms.write(here / "reference" / "rooms")
tutorials.write(here / "tutorials" / "pages")


def read_google_style(app, what, name, obj, options, lines):
    """Sections such as `Args:` in functions and classes.

    sphinx.ext.napoleon would do the same, but takes a colon in the docstring of an attribute for
    the end of a type.
    """
    if what in {"module", "class", "exception", "function", "method"}:
        lines[:] = GoogleDocstring(list(lines), what=what, name=name, obj=obj).lines()


def link_to_reference(app, docname, source):
    """A link to a source file, right on a Git host, leads to the module's reference page here."""
    source[0] = LINK.sub(reference, source[0])


def reference(found):
    module = found["module"].removesuffix("/__init__").replace("/", ".")
    text = found["text"].strip("`")
    # the command line has a page of its own
    return found[0] if module.startswith("slimfl.cli") else f"{{py:mod}}`{text} <{module}>`"


def setup(app):
    app.connect("source-read", link_to_reference)
    app.connect("autodoc-process-docstring", read_google_style)
