"""Generated TOML files and command lines: no traceback, no hang, status 0, 1 or 2.

200 cases, and 2,000 others with `make torture`. SLIMFL_FUZZ_FIRST is the first case: other numbers
are other cases.
"""

import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import fuzz_cases
from fuzz_cli import apart, call

SMALL, LARGE = 200, 2000
FIRST = int(os.environ.get("SLIMFL_FUZZ_FIRST", "0"))

#: Why a case may end with status 1: what was asked for was right, and something else is not there.
KNOWN = ("does not answer", "differences from")


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A folder with things of all kinds, no dataset, and no network to get one from."""
    monkeypatch.setenv("SLIMFL_DATA", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def furnish(folder):
    """What the paths of a case may meet."""
    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    (folder / "empty").mkdir()
    (folder / "run").mkdir()
    (folder / "run" / "experiment.toml").write_text("rounds = 1\n")
    (folder / "file.txt").write_text("text")
    (folder / "toml.toml").write_text("rounds = 1\n")
    os.mkfifo(folder / "fifo")
    (folder / "loop").symlink_to(folder / "loop")


@pytest.fixture(autouse=True)
def quick_report():
    """The report itself, not the short page of other tests here."""


@pytest.mark.slow
@apart
def test_generated_requests_end_as_every_request_does(world):
    assert_end_well(world, range(FIRST, FIRST + SMALL))


@pytest.mark.torture
@pytest.mark.parametrize("part", range(4))
@apart
def test_many_generated_requests_end_as_every_request_does(part, world):
    size = LARGE // 4
    first = FIRST + SMALL + part * size
    assert_end_well(world, range(first, first + size))


def assert_end_well(world, numbers):
    """Try the cases of these numbers."""
    wrong, ends = [], {0: 0, 1: 0, 2: 0}
    for number in numbers:
        furnish(world)
        arguments = fuzz_cases.case(number, world)
        ended = call(*arguments, cwd=world)
        if ended.status in ends:
            ends[ended.status] += 1
        if ended.fault:
            wrong.append(f"case {number}: {ended}")
        elif ended.status == 1 and not any(reason in ended.error for reason in KNOWN):
            wrong.append(f"case {number}: slimfl {arguments} failed: {ended.error}")
        elif ended.status == 0 and arguments[0] == "run" and number % 4 == 0:
            wrong += _not_readable(world, arguments, number)
    assert not wrong, "\n\n".join([f"{len(wrong)} of {len(numbers)} ({ends})", *wrong[:12]])
    assert min(ends[0], ends[2]) > len(numbers) / 20, f"the cases are too much alike: {ends}"


def _not_readable(world, arguments, number):
    """What a run has written, a comparison can read."""
    out = arguments[arguments.index("--out") + 1]
    ended = call("compare", "--json", "--", out, cwd=world)
    if ended.fault or ended.status != 0:
        return [f"case {number}: after slimfl {arguments}: {ended}\n{ended.error}"]
    return []
