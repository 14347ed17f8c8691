"""Packages that are not installed: every message names an extra that exists."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from slimfl.errors import RequestError
from slimfl.extras import require, why_missing

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "slimfl").rglob("*.py"))


def test_a_missing_package_is_named_with_the_command_that_installs_it():
    assert why_missing("watch", "json") is None
    assert why_missing("x", "no_such_a", "json", "no_such_b") == (
        "no_such_a and no_such_b are not installed; run `pip install '.[x]'` in a checkout of "
        "slimfl"
    )
    with pytest.raises(RequestError, match="no_such_a is not installed"):
        require("x", "no_such_a")


def test_a_folder_with_the_name_of_a_package_is_no_package(tmp_path, monkeypatch):
    (tmp_path / "no_such_package").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert why_missing("x", "no_such_package") is not None


def test_every_extra_that_the_code_asks_for_is_declared():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [
        node.args[0].value
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("require", "why_missing")
        and isinstance(node.args[0], ast.Constant)
    ]
    assert {"flower", "export", "watch", "ray", "huggingface"} <= {*asked}
    assert {*asked} <= {*declared["optional-dependencies"]}


def test_no_source_speaks_of_an_installation_from_a_package_index():
    for path in SOURCES:
        assert not re.search(r"pip install ['\"]?slimfl\b|slimfl\[", path.read_text()), path
