"""Links to the package's source lead to its reference page when the documentation is built.

A page links to `../src/slimfl/nn/layers.py`, which is right in an editor and on a Git host. Built
pages have something better there: what the module's docstrings say.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from sphinx.addnodes import download_reference, pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform


class SourceLinks(SphinxTransform):
    """Turns links to source files into references to modules."""

    default_priority = 5

    #: Modules that have no reference page: their links are to the file.
    without_page: ClassVar = ("slimfl.cli",)

    def apply(self, **kwargs: Any) -> None:
        """Before Sphinx collects the files that a page offers for download."""
        source = Path(self.app.srcdir).parent / "src"
        for node in list(self.document.findall(download_reference)):
            _, absolute = self.env.relfn2path(node["reftarget"], self.env.docname)
            path = Path(absolute)
            if path.suffix != ".py" or not path.is_relative_to(source):
                continue
            parts = path.relative_to(source).with_suffix("").parts
            module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            if module.startswith(self.without_page):
                continue
            link = pending_xref(
                "", *node.children, refdomain="py", reftype="mod", reftarget=module,
                refexplicit=True, refdoc=self.env.docname, refwarn=True,
            )  # fmt: skip
            link += nodes.inline() if not node.children else []
            node.replace_self(link)


def setup(app: Sphinx) -> dict[str, Any]:
    """Install the transform."""
    app.add_transform(SourceLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
