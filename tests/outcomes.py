"""What a test that cannot run here, or that fails, says."""

import importlib.util
import re

import pytest

#: Lines of a failure that are shown at its beginning and at its end.
FIRST, LAST = 10, 25
#: How a missing package shows in an error of Python or of slimfl.
ABSENT = re.compile(r"No module named '(\w+)|(\w+) (?:and \w+ )?(?:is|are) not installed; run `pip")


def needed(error: str, config: pytest.Config) -> str | None:
    """Why a test could not run: a package that is named in its error and not installed."""
    if config.getoption("--complete"):
        return None
    names = (one or other for one, other in ABSENT.findall(error))
    absent = (name for name in names if importlib.util.find_spec(name) is None)
    return next((f"needs {name}" for name in absent if name != "slimfl"), None)


def absent(config: pytest.Config, message: str) -> None:
    """Skip a test for what this machine lacks; fail it where everything has to be there."""
    (pytest.fail if config.getoption("--complete") else pytest.skip)(message)


def shortened(text: str) -> str:
    """The beginning and the end of what a failing test says; `--long` shows all of it."""
    lines = text.splitlines()
    between = len(lines) - FIRST - LAST
    if between <= 0:
        return text
    left_out = f"[{between:,} lines left out; --long shows them]"
    return "\n".join([*lines[:FIRST], left_out, *lines[-LAST:]])
