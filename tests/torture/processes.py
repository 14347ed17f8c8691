"""A command in its own process, without the seconds that its imports take."""

import json
import os
import signal
import sys
import threading
import traceback
from dataclasses import dataclass
from pathlib import Path

LONGEST_S = 60


@dataclass(frozen=True)
class Ended:
    """How a command ended; the status of a killed one is the signal's number, negative."""

    status: int
    error: str
    events: list


def slimfl(arguments, scratch, faults=None):
    """Run `slimfl ARGUMENTS` in a fork of this process."""
    output, error, events = (Path(scratch) / name for name in ("out", "err", "events"))
    for path in (output, error, events):
        path.write_bytes(b"")
    child = os.fork()
    if child == 0:
        _become(arguments, output, error, events, faults)
    timer = threading.Timer(LONGEST_S, os.kill, (child, signal.SIGKILL))
    timer.start()
    try:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert timer.is_alive(), f"hangs: {arguments}"
    finally:
        timer.cancel()
    return Ended(status, error.read_text(), json.loads(events.read_text() or "[]"))


def _become(arguments, output, error, events, faults):
    status = 99
    try:
        for path, number in ((output, 1), (error, 2)):
            os.dup2(os.open(path, os.O_WRONLY), number)
        sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
        _logging_to_stderr()
        if faults is not None:
            faults.install()
        sys.argv = ["slimfl", *map(str, arguments)]
        from slimfl.cli import main

        try:
            main()
            status = 0
        except SystemExit as ended:
            status = ended.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        if faults is not None:
            events.write_text(json.dumps(faults.events))
        sys.stdout.flush()
        os._exit(status)


def _logging_to_stderr():
    """As in a fresh process; pytest has handlers of its own."""
    import logging

    root = logging.getLogger()
    root.handlers = [logging.StreamHandler(sys.stderr)]
    root.setLevel(logging.WARNING)
