"""Makes the fake message service available to the tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _a_run(monkeypatch):
    """Flower stamps messages with the run that its process works for."""
    task_identity = pytest.importorskip("flwr.supercore.task_identity")
    for name in ("_run_id", "_task_id", "_node_id"):
        monkeypatch.setattr(task_identity.TaskIdentity, name, 1)
