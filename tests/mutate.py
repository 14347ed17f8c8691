"""Does a fast test notice when a core function is wrong? Breaks each of them once.

    python tests/mutate.py [--list] [--jobs 2] [WORD ...]

`mutations.toml` has a file, a text in it, what replaces it, and the tests that should notice.
Everything happens in copies of the tree. With words, only the rows whose name has one of them are
tried. The status is 0 if every breakage was noticed, 1 if one was not, and 2 if the table does not
fit the tree.
"""

import argparse
import concurrent.futures
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_name("mutations.toml")

#: A broken loop must not run forever.
PATIENCE_S = 300.0

#: The editable install finds modules before any path is searched.
CUSTOMISE = """import sys
sys.meta_path[:] = [f for f in sys.meta_path if "Redirecting" not in type(f).__name__]
"""


class TableError(Exception):
    """The table does not fit the tree, in one sentence."""


@dataclass(frozen=True)
class Mutation:
    """One breakage."""

    name: str
    file: str
    old: str
    new: str
    tests: list[str]

    def broken(self, text: str) -> str:
        """The text of the file with the breakage."""
        count = text.count(self.old)
        if count != 1:
            raise TableError(
                f"{self.name}: {self.file} has the text {self.old!r} {count} times, not once; "
                f"change that row of {TABLE.name}"
            )
        return text.replace(self.old, self.new)


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
            shutil.copy(found.stdout.strip(), folder / "src/slimfl")
        (folder / "customise").mkdir()
        (folder / "customise/sitecustomize.py").write_text(CUSTOMISE)

    def passes(self, tests: list[str]) -> bool:
        """True if these tests pass in the copy; raises `TableError` if they cannot be run."""
        paths = [str(self.folder / name) for name in ("customise", "src")]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONDONTWRITEBYTECODE": "1",  # a file of the same size and second looks unchanged
        }
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=no",
                   "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow", *tests]  # fmt: skip
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=environment, timeout=PATIENCE_S,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return False
        if done.returncode > 2:  # no such test, none selected, or pytest itself failed
            raise TableError(f"{' '.join(tests)} cannot be run: {done.stdout.strip()[-300:]}")
        return done.returncode == 0


def read_table(words: list[str]) -> list[Mutation]:
    """The rows of the table that were asked for."""
    rows = [Mutation(**row) for row in tomllib.loads(TABLE.read_text())["mutation"]]
    chosen = [row for row in rows if not words or any(word in row.name for word in words)]
    if not chosen:
        raise TableError(f"no row of {TABLE.name} has a name with {' or '.join(words)}")
    for row in chosen:
        path = ROOT / row.file
        if not path.is_file():
            raise TableError(f"{row.name}: there is no {row.file}; change that row")
        row.broken(path.read_text())
    return chosen


def unnoticed(rows: list[Mutation], jobs: int) -> list[str]:
    """The names of the breakages that no test noticed."""
    with tempfile.TemporaryDirectory(prefix="slimfl-mutate-") as folder:
        trees: queue.Queue[Tree] = queue.Queue()
        for number in range(jobs):
            (Path(folder) / str(number)).mkdir()
            trees.put(Tree(Path(folder) / str(number)))

        def noticed(row: Mutation) -> bool:
            tree = trees.get()
            path = tree.folder / row.file
            whole = path.read_text()
            try:
                path.write_text(row.broken(whole))
                began = time.monotonic()
                seen = not tree.passes(row.tests)
                mark = "seen" if seen else "NOT SEEN"
                print(f"{mark:9}{time.monotonic() - began:4.0f} s  {row.name}", flush=True)
                return seen
            finally:
                path.write_text(whole)
                trees.put(tree)

        tree = trees.get()
        if not tree.passes(sorted({test for row in rows for test in row.tests})):
            raise TableError("the tests fail without any breakage; repair them first")
        trees.put(tree)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            results = list(pool.map(noticed, rows))
    return [row.name for row, seen in zip(rows, results, strict=True) if not seen]


def main() -> int:
    """Read the command line, and break what it asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", help="try only rows whose name has one of these")
    parser.add_argument("--list", action="store_true", help="show the rows and check that they fit")
    parser.add_argument("--jobs", type=int, default=2, help="copies at a time (default: 2)")
    asked = parser.parse_args()
    try:
        rows = read_table(asked.words)
        if asked.list:
            print("\n".join(f"{row.name:50}{row.file}" for row in rows))
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
