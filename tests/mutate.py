"""Does a fast test notice when a core function is wrong? Breaks each of them once.

    python tests/mutate.py [--list] [--jobs 2] [WORD ...]

`mutations.toml` has a text that occurs once in the library, what replaces it, and the tests that
should notice; so a row stays valid when its function moves to another file. Everything happens in
copies of the tree, in forks of a process that has imported PyTorch once. With words, only the rows
whose name has one of them are tried. The status is 0 if every breakage was noticed, 1 if one was
not, and 2 if the table does not fit the tree.
"""

import argparse
import importlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_name("mutations.toml")
LIBRARY = "src/slimfl"

#: What the tests need, as far as it takes long to import and is none of ours.
SLOW_IMPORTS = ("torch", "scipy.special", "hypothesis", "pydantic", "matplotlib.figure")

#: A broken loop must not run forever.
PATIENCE_S = 300

#: For the processes that a test starts: the editable install finds modules before any path does.
CUSTOMISE = """import sys
sys.meta_path[:] = [f for f in sys.meta_path if "Redirecting" not in type(f).__name__]
"""


class TableError(Exception):
    """The table does not fit the tree, in one sentence."""


@dataclass(frozen=True)
class Mutation:
    """One breakage."""

    name: str
    old: str
    new: str
    tests: list[str]

    def place(self, sources: dict[str, str]) -> str:
        """The file that has the text."""
        places = [name for name, text in sources.items() for _ in range(text.count(self.old))]
        if len(places) != 1:
            found = f"{len(places)} times ({', '.join(places)})" if places else "nowhere"
            raise TableError(
                f"{self.name}: the text {self.old!r} is {found} in {LIBRARY}, and it has to be "
                f"there once; change that row of {TABLE.name}"
            )
        return places[0]


class Tree:
    """A copy of the files that are tracked or new, with the compiled module."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard",
             "src/slimfl", "tests", "lab", "benchmarks", "docs", "examples", "pyproject.toml",
             "README.md"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, folder / name)
        found = subprocess.run(
            [sys.executable, "-c", "import slimfl._native as n; print(n.__file__)"],
            cwd=folder, capture_output=True, text=True,
        )  # fmt: skip
        if found.returncode == 0:  # without a compiler, tests of the native engine are skipped
            shutil.copy(found.stdout.strip(), folder / LIBRARY)
        (folder / "customise").mkdir()
        (folder / "customise/sitecustomize.py").write_text(CUSTOMISE)

    def start(self, tests: list[str], patience_s: int) -> int:
        """Begin these tests in a fork of this process; returns its number."""
        child = os.fork()
        if child:
            return child
        status = 4
        try:
            signal.alarm(patience_s)
            output = os.open(self.folder / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.chdir(self.folder)
            exec(CUSTOMISE, {})
            paths = [str(self.folder / "customise"), str(self.folder / "src")]
            sys.path[:0] = paths
            os.environ["PYTHONPATH"] = os.pathsep.join(paths)
            # a file that was changed to the same size in the same second would look unchanged
            os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
            sys.dont_write_bytecode = True
            options = ["-x", "-q", "--no-header", "--tb=no", "-m", "not slow"]
            plugins = ["-p", "no:cacheprovider", "-p", "no:xdist"]
            status = int(pytest.main([*options, *plugins, *tests]))
        finally:
            os._exit(status)

    def passed(self, status: int) -> bool:
        """Whether the tests passed, from the status of `os.wait`."""
        code = os.waitstatus_to_exitcode(status)  # negative if it was killed, also for its time
        if code > 2:  # no such test, none selected, or pytest itself failed
            said = (self.folder / "output").read_text(errors="replace").strip()
            raise TableError(f"the tests cannot be run: {said[-300:]}")
        return code == 0


def read_table(words: list[str]) -> list[Mutation]:
    """The rows of the table that were asked for."""
    rows = [Mutation(**row) for row in tomllib.loads(TABLE.read_text())["mutation"]]
    chosen = [row for row in rows if not words or any(word in row.name for word in words)]
    if not chosen:
        raise TableError(f"no row of {TABLE.name} has a name with {' or '.join(words)}")
    library = sources(ROOT)
    for row in chosen:
        row.place(library)
    return chosen


def sources(root: Path) -> dict[str, str]:
    """The library's files by their path in the tree."""
    found = sorted((root / LIBRARY).rglob("*.py"))
    return {str(path.relative_to(root)): path.read_text() for path in found}


def unnoticed(rows: list[Mutation], jobs: int) -> list[str]:
    """The names of the breakages that no test noticed."""
    for name in SLOW_IMPORTS:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory(prefix="slimfl-mutate-") as folder:
        free = [Tree(Path(folder) / str(number)) for number in range(jobs)]
        whole = sources(free[0].folder)
        waiting, missed = rows[::-1], []
        # without a breakage, all of them have to pass
        tree, tests = free.pop(), sorted({test for row in rows for test in row.tests})
        running: dict[int, tuple[Tree, Mutation | None, float]] = {
            tree.start(tests, 20 * PATIENCE_S): (tree, None, time.monotonic())
        }
        while waiting or running:
            while waiting and free:
                row, tree = waiting.pop(), free.pop()
                place = row.place(whole)
                (tree.folder / place).write_text(whole[place].replace(row.old, row.new))
                running[tree.start(row.tests, PATIENCE_S)] = tree, row, time.monotonic()
            child, status = os.wait()
            tree, broken, began = running.pop(child)
            passed = tree.passed(status)
            free.append(tree)
            if broken is None:
                if not passed:
                    said = (tree.folder / "output").read_text(errors="replace").strip()
                    raise TableError(f"tests fail without any breakage: {said[-300:]}")
                continue
            if passed:
                missed.append(broken.name)
            mark = "NOT SEEN" if passed else "seen"
            print(f"{mark:9}{time.monotonic() - began:4.0f} s  {broken.name}", flush=True)
            place = broken.place(whole)
            (tree.folder / place).write_text(whole[place])
    return missed


def main() -> int:
    """Read the command line, and break what it asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("words", nargs="*", help="try only rows whose name has one of these")
    parser.add_argument("--list", action="store_true", help="show the rows and check that they fit")
    parser.add_argument("--jobs", type=int, default=2, help="copies at a time (default: 2)")
    asked = parser.parse_args()
    try:
        rows = read_table(asked.words)
        if asked.list:
            library = sources(ROOT)
            print("\n".join(f"{row.name:60}{row.place(library)}" for row in rows))
            return 0
        missed = unnoticed(rows, max(1, asked.jobs))
    except TableError as error:
        print(f"mutate: {error}", file=sys.stderr)
        return 2
    print(f"{len(rows) - len(missed)} of {len(rows)} breakages were noticed")
    for name in missed:
        print(f"no fast test noticed: {name}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
