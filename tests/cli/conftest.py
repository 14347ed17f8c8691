"""A module that leaves a trace when it is imported, and packages that are not installed."""

import importlib.util
import sys
import textwrap

import pytest

NETWORKS = """
    from pathlib import Path
    from torch import nn
    from slimfl.nn import slimmable
    with Path({marker!r}).open("a") as file:
        file.write("imported\\n")

    def small(in_channels, classes, hidden=4):
        return slimmable(nn.Sequential(
            nn.Conv2d(in_channels, hidden, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Linear(hidden, classes),
        ))
"""


@pytest.fixture
def marker(tmp_path, monkeypatch):
    """Is there once the module `shared.networks` was imported."""
    marker = tmp_path / "marker"
    package = tmp_path / "python" / "shared"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    code = textwrap.dedent(NETWORKS.format(marker=str(marker)))
    (package / "networks.py").write_text(code)
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.setenv("PYTHONPATH", str(package.parent))  # for worker processes
    yield marker
    for name in ("shared", "shared.networks"):
        sys.modules.pop(name, None)


@pytest.fixture
def without(monkeypatch):
    """Take packages away, by name."""
    find_spec = importlib.util.find_spec

    def remove(*packages):
        absent = lambda name, *a: None if name in packages else find_spec(name, *a)  # noqa: E731
        monkeypatch.setattr(importlib.util, "find_spec", absent)

    return remove
