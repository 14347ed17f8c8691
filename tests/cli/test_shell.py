"""What a shell asks the program: its version, and completions."""

import os
import subprocess
import sys
from importlib.metadata import version

PROGRAM = [sys.executable, "-c", "from slimfl.cli import main; main()"]


def answer(*arguments, **environment):
    return subprocess.run(
        [*PROGRAM, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_version_is_that_of_the_package():
    done = answer("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"slimfl {version('slimfl')}\n", "")


def test_a_shell_is_told_how_a_command_goes_on():
    # typer derives the variable from the program's name, which is `-c` here
    # and asks the processes above for their shell, if it is not kept from doing so
    told = answer("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    name = next(
        line.split("_COMPLETE=")[0].split()[-1] + "_COMPLETE"
        for line in told.stdout.splitlines()
        if "_COMPLETE=" in line
    )
    done = answer(**{name: "complete_bash", "COMP_WORDS": "slimfl re", "COMP_CWORD": "1"})
    assert done.stdout.split() == ["resume", "report"]
