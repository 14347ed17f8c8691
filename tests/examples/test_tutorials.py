"""The tutorials run from top to bottom at a small size; the notebooks are those of the sources."""

import importlib.util
import json
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SMALL = {
    "DATA": "synthetic", "ROUNDS": 2, "STEPS": 2, "SEEDS": [0, 1], "ALPHAS": [0.5, 5.0],
}  # fmt: skip


def module():
    spec = importlib.util.spec_from_file_location("tutorials", DOCS / "_ext/tutorials.py")
    made = importlib.util.module_from_spec(spec)
    __import__("sys").modules["tutorials"] = made
    spec.loader.exec_module(made)
    return made


tutorials = module()
SOURCES = tutorials.sources()


def test_there_are_six():
    assert [source.stem[:2] for source in SOURCES] == [f"{n}-" for n in range(1, 7)]


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_tutorial_runs(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = tutorials.execute(source, SMALL)
    shown = [output for cell in cells for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", {}) for output in shown)
    assert list(tmp_path.iterdir()) == []  # a notebook leaves nothing where it is opened


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_notebook_is_that_of_the_source_with_small_outputs(source):
    held = json.loads(source.with_suffix(".ipynb").read_text())
    without = [{key: cell[key] for key in cell if key != "outputs"} for cell in held["cells"]]
    expected = [{key: c[key] for key in c if key != "outputs"} for c in tutorials.cells(source)]
    assert without == expected, "run `python docs/_ext/tutorials.py`"
    outputs = [output for cell in held["cells"] for output in cell.get("outputs", ())]
    assert outputs
    assert not any(output["output_type"] == "error" for output in outputs)
    assert max(len(json.dumps(output)) for output in outputs) < tutorials.MOST_BYTES


def test_the_rival_method_has_sixty_lines_at_most():
    [source] = [one for one in SOURCES if "rival" in one.stem]
    code = [cell["source"] for cell in tutorials.cells(source)]
    [method] = [lines for lines in code if any("class DrawnWidth" in line for line in lines)]
    assert len(method) <= 60


def test_pages_are_made_of_the_notebooks(tmp_path):
    tutorials.write(tmp_path)
    for source in SOURCES:
        page = (tmp_path / f"{source.stem}.md").read_text()
        assert page.startswith("# ")
        assert page.count("```") % 2 == 0
        assert "![](" in page
    assert list(tmp_path.glob("*.png"))
