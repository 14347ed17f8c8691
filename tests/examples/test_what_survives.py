"""The table on the page about the radio is the one that the example prints."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_table_that_the_example_prints():
    done = subprocess.run(
        [sys.executable, ROOT / "examples/what_survives.py"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") > 10
    assert done.stdout in (ROOT / "docs/radio.md").read_text()
