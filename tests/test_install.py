"""The package can be installed without a compiler, then without its native engine."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def committed(folder):
    done = subprocess.run(
        ["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {name for name in done.stdout.splitlines() if (ROOT / name).exists()}


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
    assert {name.removeprefix("src/") for name in committed("src/slimfl")} <= names
    assert not any("_native" in Path(name).name and name.endswith(".so") for name in names)


def test_an_sdist_holds_what_a_build_and_a_reader_need_and_no_results(tmp_path):
    code = "import sys, scikit_build_core.build as b; b.build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, tmp_path], cwd=ROOT, check=True, timeout=120)
    [sdist] = tmp_path.glob("slimfl-*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = committed("src") | {"CMakeLists.txt", "pyproject.toml", "README.md", "LICENSE"}
    assert wanted <= names
    assert not any(name.startswith(("results/", "runs/", ".github", ".venv")) for name in names)
    assert sdist.stat().st_size < 5e6


def test_what_the_dockerfile_copies_is_committed_and_let_through():
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    copied = [line.split()[1:-1] for line in lines if re.match(r"COPY (?!--from)", line)]
    names = {name for names in copied for name in names}
    assert {"pyproject.toml", "src"} <= names
    allowed = (ROOT / ".dockerignore").read_text().splitlines()
    for name in names:
        assert committed(name), name
        assert f"!{name}" in allowed, name
