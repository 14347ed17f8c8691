"""Tutorials: small sources in, notebooks with outputs and pages of the documentation out.

A source is a Python file in which `# %% [markdown]` begins a cell of text, `# %%` one of code and
`# %% parameters` the cell whose values may be replaced, so that a test runs small. After a change,

    python docs/_ext/tutorials.py [NAME...]

executes the sources and writes the notebooks beside them. A documentation build executes nothing:
it makes pages of the notebooks as they are.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "tutorials"
#: What an output may take in a notebook.
MOST_BYTES = 150_000
#: A cell as the notebook format has it.
Cell = dict[str, Any]


def sources() -> list[Path]:
    """The sources, in the order in which they are to be read."""
    return sorted(FOLDER.glob("[0-9]-*.py"))


def cells(source: Path) -> list[Cell]:
    """The cells of a source, without outputs."""
    found: list[Cell] = []
    for part in source.read_text(encoding="utf-8").split("# %%")[1:]:
        kind, _, text = part.partition("\n")
        made: Cell = {"cell_type": "code", "id": f"cell-{len(found)}", "metadata": {}}
        if "[markdown]" in kind:
            made["cell_type"] = "markdown"
            text = "\n".join(x.removeprefix("#").removeprefix(" ") for x in text.split("\n"))
        elif "parameters" in kind:
            made["metadata"] = {"tags": ["parameters"]}
        made["source"] = text.strip("\n").splitlines(keepends=True)
        if made["cell_type"] == "code":
            made |= {"execution_count": None, "outputs": []}
        found.append(made)
    return found


def execute(source: Path, replaced: dict[str, Any] | None = None) -> list[Cell]:
    """Run the cells one after the other, as a notebook would, and keep what they show."""
    import matplotlib as mpl

    mpl.use("Agg")
    found = cells(source)
    space: dict[str, Any] = {"__name__": "__main__"}
    for cell in (each for each in found if each["cell_type"] == "code"):
        text = "".join(cell["source"])
        try:
            cell["outputs"] = _run(text, space)
        except Exception as error:
            error.add_note(f"in {cell['id']} of {source.name}:\n{text}")
            raise
        if cell["metadata"]:
            space.update({k: v for k, v in (replaced or {}).items() if k in space})
    return found


def _run(text: str, space: dict[str, Any]) -> list[dict[str, Any]]:
    import matplotlib.pyplot as plt

    tree = ast.parse(text)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), space)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), space)
    outputs: list[dict[str, Any]] = []
    if said := printed.getvalue().splitlines(keepends=True):
        outputs.append({"output_type": "stream", "name": "stdout", "text": said})
    if value is not None:
        outputs.append({**_output("execute_result", value), "execution_count": None})
    for number in plt.get_fignums():
        outputs.append(_output("display_data", plt.figure(number)))
        plt.close(number)
    return outputs


def _output(kind: str, value: Any) -> dict[str, Any]:
    data: dict[str, Any] = {"text/plain": repr(value).splitlines(keepends=True)}
    if hasattr(value, "savefig"):
        buffer = io.BytesIO()
        value.savefig(buffer, format="png", dpi=80, bbox_inches="tight")
        data = {"image/png": base64.b64encode(buffer.getvalue()).decode(), "text/plain": ["figure"]}
    elif hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_().splitlines(keepends=True)
    return {"output_type": kind, "metadata": {}, "data": data}


def build(source: Path) -> Path:
    """Execute a source and write its notebook, in format 4.5."""
    path = source.with_suffix(".ipynb")
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {
        "cells": execute(source),
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def write(folder: Path) -> None:
    """Write every notebook as a page of the documentation, with its figures beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for source in sources():
        notebook = json.loads(source.with_suffix(".ipynb").read_text(encoding="utf-8"))
        parts = []
        for cell in notebook["cells"]:
            text = "".join(cell["source"])
            parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
            for number, output in enumerate(cell.get("outputs", ())):
                picture = folder / f"{source.stem}-{cell['id']}-{number}.png"
                parts.append(_page_output(output, picture))
        heading, _, text = parts[0].partition("\n")
        name = source.stem
        where = f"This page is a notebook: {{download}}`{name}.ipynb <../{name}.ipynb>`."
        page = "\n\n".join([heading, where, text.strip(), *parts[1:]])
        (folder / f"{name}.md").write_text(page + "\n", encoding="utf-8")


def _page_output(output: dict[str, Any], picture: Path) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        picture.write_bytes(base64.b64decode(data["image/png"]))
        return f"![]({picture.name})"
    if "text/html" in data:
        return f"```{{raw}} html\n{''.join(data['text/html'])}\n```"
    return f"```text\n{''.join(output.get('text') or data['text/plain']).rstrip()}\n```"


if __name__ == "__main__":
    for one in sources():
        if len(sys.argv) == 1 or any(name in one.name for name in sys.argv[1:]):
            print(build(one))
