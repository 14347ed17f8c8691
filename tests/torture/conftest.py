"""Torture tests: failures of the machine and hostile input, exhaustively.

A test here has a small size, a seeded sample that always runs, and a large one that is marked
`torture` and runs with `make torture` (`pytest --torture`).

    faults.py          counts what a process writes, and kills it or fills the disk at the k-th
    processes.py       runs a command in a fork of this process, which has everything imported
    test_kills.py      kills and full disks at every write of a run, a resume and a grid
"""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

if not hasattr(os, "fork"):
    pytest.skip("forks are needed", allow_module_level=True)


@pytest.fixture(autouse=True)
def quick_report(monkeypatch):
    """A short page in place of the report, written in the same way."""
    from slimfl.files import atomic_write
    from slimfl.report.pages import run_report

    def write(records, path):
        with atomic_write(path) as temporary:
            temporary.write_text("\n".join(str(record.path) for record in records))
        return path

    monkeypatch.setattr(run_report, "write_report", write)
