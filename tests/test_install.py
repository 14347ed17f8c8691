"""The package installs where there is no compiler, then without its native engine."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_a_wheel_without_a_compiler_holds_all_but_the_native_engine(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--quiet",
         "--wheel-dir", tmp_path, ROOT],
        env={**os.environ, "CXX": "/bin/false"},
        capture_output=True,
        text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    [wheel] = tmp_path.glob("slimfl-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"slimfl/api.py", "slimfl/py.typed", "slimfl/report/pages/page.css"} <= names
    assert {"slimfl/reproduction/page/page.css", "slimfl/report/pages/charts/mount.js"} <= names
    assert not any("_native" in Path(name).name and name.endswith(".so") for name in names)
