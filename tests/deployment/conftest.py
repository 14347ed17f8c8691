"""Uses the engine tests' fake message service."""

import sys
from pathlib import Path

import pytest
from flwr.supercore.task_identity import TaskIdentity

for folder in (Path(__file__).parent, Path(__file__).parents[1] / "engines/flower"):
    sys.path.insert(0, str(folder))


@pytest.fixture(autouse=True)
def _a_run(monkeypatch):
    """Flower stamps messages with the run that its process works for."""
    for name in ("_run_id", "_task_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)
