"""Run a command in this process and judge how it ended.

No process per case: thousands have to fit into minutes. A case may neither hang nor take gigabytes;
both are cut off here, which may leave a module half imported. So the cases of a test run in a fork
(`apart`), and no other test meets what they leave.
"""

import contextlib
import faulthandler
import functools
import io
import multiprocessing
import os
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.__main__ import app as lab_app
from slimfl.cli.app import app, main

#: What a case may run: its words are those of `slimfl`, or `lab` and those of `python -m lab`.
APPS = {"slimfl": app, "lab": lab_app}

#: Seconds of computing after which a case counts as hanging, as others may keep the machine busy.
HANG_S = 30.0
#: Seconds on the clock after which the process ends, as Python is stuck or waits for ever.
STUCK_S = 600.0
#: Further memory that a case may ask for.
MEMORY_BYTES = 2 << 30


def apart(test: Callable[..., None]) -> Callable[..., None]:
    """A test that runs in a fork of this process."""

    @functools.wraps(test)
    def forked(*args: object, **named: object) -> None:
        here, there = multiprocessing.Pipe(duplex=False)

        def child() -> None:
            try:
                test(*args, **named)
            except BaseException as error:
                known = isinstance(error, AssertionError)
                there.send(str(error) if known else traceback.format_exc())

        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        there.close()
        with contextlib.suppress(EOFError):
            pytest.fail(here.recv(), pytrace=False)
        process.join()
        assert process.exitcode == 0, f"the process of the cases ended with {process.exitcode}"

    return forked


class HangError(BaseException):
    """A case that took too long; not an Exception, so that nothing in between handles it."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    arguments: tuple[str, ...]
    status: int | None
    out: str
    error: str
    escaped: str
    """The traceback of an exception that left `main`, or a warning that a user would see."""

    @property
    def fault(self) -> str | None:
        """What breaks the rules of every command; None if nothing does."""
        if self.escaped:
            return self.escaped
        if self.status not in (0, 1, 2):
            return f"status {self.status}"
        if "Traceback" in self.error:
            return "a traceback on standard error"
        if self.status == 0 or self.error.startswith("Usage:"):
            return None
        program = "lab: " if self.arguments[0] == "lab" else "slimfl: "
        sentences = [line for line in self.error.splitlines() if line.startswith(program)]
        lines = len(self.error.splitlines()) if self.status == 2 else 1
        if len(sentences) != 1 or lines != 1 or not self.error.endswith("\n"):
            return f"not one sentence: {self.error!r}"
        if len(sentences[0]) > 2000:
            return f"a sentence of {len(sentences[0])} characters"
        return None

    def __str__(self) -> str:
        return f"{' '.join(map(repr, self.arguments))}\n{self.fault}"


def call(*arguments: object, cwd: Path) -> Ended:
    """Run a command of `slimfl` in a folder, or one of the lab where the first word is `lab`."""
    words = tuple(map(str, arguments))
    program, wanted = ("lab", words[1:]) if words[:1] == ("lab",) else ("slimfl", words)
    out, error = _Terminal(), _Terminal()
    escaped, status = "", None
    before_argv, before_cwd = sys.argv, Path.cwd()
    sys.argv = [program, *wanted]
    os.chdir(cwd)
    with warnings.catch_warnings(record=True) as seen, _limits():
        warnings.simplefilter("always")
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
                main(APPS[program], program)
            escaped = "main returned"
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except BaseException:
            escaped = traceback.format_exc()
        finally:
            sys.argv = before_argv
            os.chdir(before_cwd)
    ours = [w for w in seen if "slimfl" in Path(w.filename).parts]
    if ours and not escaped:
        escaped = f"warning: {ours[0].filename}:{ours[0].lineno}: {ours[0].message}"
    return Ended(words, status, out.getvalue(), error.getvalue(), escaped)


class _Terminal(io.StringIO):
    """Standard output as a file is: text that UTF-8 cannot hold is an error."""

    def write(self, text: str) -> int:
        text.encode("utf-8", "strict" if self is not sys.stderr else "backslashreplace")
        return super().write(text)


@contextlib.contextmanager
def _limits():
    def hang(*_):
        raise HangError(f"still running after {HANG_S:g} s of computing")

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = signal.signal(signal.SIGPROF, hang)
    faulthandler.dump_traceback_later(STUCK_S, exit=True, file=sys.__stderr__)
    signal.setitimer(signal.ITIMER_PROF, HANG_S)
    resource.setrlimit(resource.RLIMIT_AS, (in_use + MEMORY_BYTES, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        faulthandler.cancel_dump_traceback_later()
