"""What the tests themselves rely on."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.outcomes import FIRST, LAST, needed, shortened


def config(complete):
    return SimpleNamespace(getoption=lambda name: complete)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        ("ModuleNotFoundError: No module named 'no_such_thing.part'", "needs no_such_thing"),
        ("no_such and ray are not installed; run `pip install '.[x]'`", "needs no_such"),
        ("No module named 'numpy'", None),  # it is there, so something else is wrong
        ("No module named 'slimfl.no_such'", None),
        ("assert 1 == 2", None),
    ],
)
def test_a_test_is_skipped_only_for_what_is_not_installed(error, why):
    assert needed(error, config(False)) == why
    assert needed(error, config(True)) is None


def test_a_long_failure_fits_on_a_screen():
    lines = [str(number) for number in range(5000)]
    short = shortened("\n".join(lines)).splitlines()
    assert len(short) == FIRST + LAST + 1 < 40
    assert (short[0], short[-1]) == ("0", "4999")
    assert "4,965 lines left out" in short[FIRST]
    assert shortened("1\n2") == "1\n2"


@pytest.mark.slow
def test_tests_in_the_background_can_be_interrupted():
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); import conftest; "
        "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr
