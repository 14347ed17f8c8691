"""Ends a Ray when the process that started it is gone, and removes its folder.

Ray leaves processes and its folder behind when its owner is killed. This file runs as a separate
program: it waits until its owner closes the pipe to it, which the system does for a killed process.
It needs only the standard library.

Processes are recognised by their environment, which their children inherit, read from /proc.
Without /proc, the owner's own `ray.shutdown` has to suffice.
"""

import contextlib
import os
import select
import shutil
import signal
import sys
import time
from pathlib import Path

#: Environment variable with the folder of the Ray that a process belongs to.
MARK = "SLIMFL_RAY_FOLDER"

#: How long killed processes may take to end.
PATIENCE_S = 20.0


def processes(folder: Path) -> list[int]:
    """The living processes of the Ray in a folder."""
    mark = os.fsencode(f"{MARK}={folder}")
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            if mark in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return [pid for pid in found if pid != os.getpid()]


def clear(folder: Path) -> None:
    """Kill all processes of a Ray, including those started meanwhile, and remove its folder."""
    deadline = time.monotonic() + PATIENCE_S
    while (left := processes(folder)) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)


def main(folder: Path, owner: int) -> None:
    """Wait for the end of the owner, then clean up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # a child of the owner may keep the pipe open after the owner has ended
    while os.getppid() == owner and not select.select([0], [], [], 1.0)[0]:
        pass
    clear(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
