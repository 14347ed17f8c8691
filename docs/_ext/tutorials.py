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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "tutorials"

#: What an output may take in a notebook.
MOST_BYTES = 150_000


@dataclass
class Cell:
    """One cell; `outputs` are as the notebook format has them."""

    kind: str
    text: str
    parameters: bool = False
    outputs: list[dict[str, Any]] = field(default_factory=list)


def sources() -> list[Path]:
    """The sources, in the order in which they are to be read."""
    return sorted(FOLDER.glob("[0-9]-*.py"))


def cells(source: Path) -> list[Cell]:
    """The cells of a source."""
    found: list[Cell] = []
    for line in source.read_text(encoding="utf-8").splitlines():
        if line.startswith("# %%"):
            kind = "markdown" if "[markdown]" in line else "code"
            found.append(Cell(kind, "", parameters="parameters" in line))
        elif found[-1].kind == "markdown":
            found[-1].text += line.removeprefix("#").removeprefix(" ") + "\n"
        else:
            found[-1].text += line + "\n"
    for cell in found:
        cell.text = cell.text.strip("\n")
    return found


def execute(source: Path, replaced: dict[str, Any] | None = None) -> list[Cell]:
    """Run the cells one after the other, as a notebook would, and keep what they show."""
    import matplotlib as mpl

    mpl.use("Agg")
    found = cells(source)
    space: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(found):
        if cell.kind != "code":
            continue
        try:
            cell.outputs = _run(cell.text, space)
        except Exception as error:
            error.add_note(f"in cell {number} of {source.name}:\n{cell.text}")
            raise
        if cell.parameters:
            space.update({k: v for k, v in (replaced or {}).items() if k in space})
    return found


def _run(text: str, space: dict[str, Any]) -> list[dict[str, Any]]:
    import matplotlib.pyplot as plt

    tree = ast.parse(text)
    last = tree.body[-1] if tree.body else None
    shows = isinstance(last, ast.Expr)
    body = tree.body[:-1] if shows else tree.body
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "<cell>", "exec"), space)
        if shows and isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), space)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed)})
    if value is not None:
        outputs.append(_output("execute_result", value))
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
    output = {"output_type": kind, "metadata": {}, "data": data}
    return {**output, "execution_count": None} if kind == "execute_result" else output


def _lines(printed: io.StringIO) -> list[str]:
    return printed.getvalue().splitlines(keepends=True)


def notebook(found: list[Cell]) -> dict[str, Any]:
    """A notebook in format 4.5."""
    written = []
    for number, cell in enumerate(found):
        entry: dict[str, Any] = {
            "cell_type": cell.kind,
            "id": f"cell-{number}",
            "metadata": {"tags": ["parameters"]} if cell.parameters else {},
            "source": cell.text.splitlines(keepends=True),
        }
        if cell.kind == "code":
            entry |= {"execution_count": None, "outputs": cell.outputs}
        written.append(entry)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": written,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def build(source: Path) -> Path:
    """Execute a source and write its notebook."""
    path = source.with_suffix(".ipynb")
    text = json.dumps(notebook(execute(source)), indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def write(folder: Path) -> None:
    """Write every notebook as a page of the documentation, with its figures beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for source in sources():
        entries = json.loads(source.with_suffix(".ipynb").read_text(encoding="utf-8"))["cells"]
        name = source.stem
        parts = []
        for number, entry in enumerate(entries):
            text = "".join(entry["source"])
            if entry["cell_type"] == "markdown":
                parts.append(text)
                continue
            parts.append(f"```python\n{text}\n```")
            parts += [
                _page_output(one, folder / f"{name}-{number}-{k}.png")
                for k, one in enumerate(entry["outputs"])
            ]
        title, *rest = parts
        where = f"This page is a notebook: {{download}}`{name}.ipynb <../{name}.ipynb>`."
        heading, _, text = title.partition("\n")
        page = "\n\n".join([heading, where, text.strip(), *rest])
        (folder / f"{name}.md").write_text(page + "\n", encoding="utf-8")


def _page_output(output: dict[str, Any], picture: Path) -> str:
    if output["output_type"] == "stream":
        return f"```text\n{''.join(output['text'])}```"
    data = output["data"]
    if "image/png" in data:
        picture.write_bytes(base64.b64decode(data["image/png"]))
        return f"![]({picture.name})"
    if "text/html" in data:
        return f"```{{raw}} html\n{''.join(data['text/html'])}\n```"
    return f"```text\n{''.join(data['text/plain'])}\n```"


if __name__ == "__main__":
    for one in sources():
        if len(sys.argv) == 1 or any(name in one.name for name in sys.argv[1:]):
            print(build(one))
