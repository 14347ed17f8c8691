"""The code in the README and in the how-to guides runs as printed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOWTO = sorted((ROOT / "docs/howto").glob("*.py"))


@pytest.mark.slow
def test_the_example_of_the_readme_runs_and_is_short(capsys):
    [code] = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(code.splitlines()) <= 15
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "0.5x" in printed
    assert "1.0x" in printed


def test_the_commands_of_the_readme_exist():
    text = (ROOT / "README.md").read_text()
    done = subprocess.run(
        [sys.executable, "-c", "from slimfl.cli import main; main()", "--help"],
        capture_output=True,
        text=True,
    )
    for command in set(re.findall(r"`slimfl ([a-z]+)", text)):
        assert re.search(rf"^\s+{command}\s", done.stdout, re.MULTILINE), command


def test_every_page_the_readme_names_is_there():
    for link in re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / link).exists(), link


@pytest.mark.slow
@pytest.mark.parametrize("script", HOWTO, ids=lambda path: path.stem)
def test_a_guide_runs(script, tmp_path):
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_there_are_guides():
    assert {p.stem for p in HOWTO} >= {"own_model", "own_data", "own_channel", "own_method"}
