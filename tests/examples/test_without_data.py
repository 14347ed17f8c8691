"""An example whose data are nowhere says so in one sentence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "words"),
    [
        ("slimfl_plain", "does not contain the files of fashion-mnist"),
        ("fedprox_mnist", "does not contain the files of mnist"),
        ("mixed_devices", "there is nothing to report"),
    ],
)
def test_an_example_without_its_data_ends_in_one_sentence(example, words, tmp_path):
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{example}.py"],
        env={**os.environ, "SLIMFL_DATA": str(tmp_path)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
