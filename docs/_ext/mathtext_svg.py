"""Formulas as inline SVG, drawn by matplotlib's mathtext.

The pages then need neither a script from the network nor LaTeX, look the same in every browser and
take the colour of the text around them. The typeface is Computer Modern, which comes with
matplotlib: MathML would need a mathematical font on the reader's machine. The TeX source stays in
the picture as its title.
"""

from __future__ import annotations

import html
import re
from functools import cache
from typing import Any

from docutils import nodes
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import text_to_path
from sphinx.application import Sphinx
from sphinx.util.math import get_node_equation_number

#: Points; a formula is measured in em, so that it grows with the text.
SIZE = 10.0
PRIMED = re.compile(r"([A-Za-z])'_(\w|\{[^}]*\})")
COMMANDS = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C"}


@cache
def svg(tex: str, scale: float = 1.0) -> str:
    """One formula as an `<svg>` element that stands on the text's baseline."""
    # mathtext sets the index of u'_i behind the prime instead of below it
    flat = PRIMED.sub(r"\1_\2^{\\prime}", " ".join(tex.split()))
    source = f"${flat}$"
    font = FontProperties(size=SIZE, math_fontfamily="cm")
    width, height, depth = text_to_path.get_text_width_height_descent(source, font, True)
    vertices, codes = text_to_path.get_text_path(font, source, ismath=True)
    # outlines come at FONT_SCALE points; the y axis points up there and down in SVG
    unit = SIZE / text_to_path.FONT_SCALE
    outline = Path([(x * unit, -y * unit) for x, y in vertices], codes)
    parts = []
    for points, code in outline.iter_segments(simplify=False, curves=True):
        if code == Path.CLOSEPOLY:
            parts.append("Z")
        else:
            parts.append(COMMANDS[code] + " ".join(f"{value:.2f}" for value in points))
    pad = 0.4
    box = (-pad, -(height - depth) - pad, width + 2 * pad, height + 2 * pad)
    em = scale / SIZE
    return (
        f'<svg class="formula" role="img" xmlns="http://www.w3.org/2000/svg"'
        f' viewBox="{box[0]:.2f} {box[1]:.2f} {box[2]:.2f} {box[3]:.2f}"'
        f' style="width:{box[2] * em:.3f}em;height:{box[3] * em:.3f}em;'
        f'vertical-align:{-(depth + pad) * em:.3f}em">'
        f"<title>{html.escape(' '.join(tex.split()))}</title>"
        f'<path fill="currentColor" d="{"".join(parts)}"/></svg>'
    )


def visit_inline(translator: Any, node: nodes.math) -> None:
    """A formula within a line."""
    translator.body.append(svg(node.astext(), 1.15))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """A formula on lines of its own; a blank line or a double backslash starts a new one."""
    attributes: dict[str, Any] = {"CLASS": "math-block"}
    if node["ids"]:
        attributes["ids"] = node["ids"]
    translator.body.append(translator.starttag(node, "div", **attributes))
    text = node.astext().replace("\\\\\n", "\n\n").replace(r"\frac", r"\dfrac")
    for line in text.split("\n\n"):
        if line.strip():
            translator.body.append(f'<div class="math-line">{svg(line, 1.25)}</div>')
    if node.get("number"):
        number = get_node_equation_number(translator, node)
        translator.body.append(f'<span class="eqno">({number})</span>')
    translator.body.append("</div>")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Offer the renderer under the name `mathtext`."""
    app.add_html_math_renderer("mathtext", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
