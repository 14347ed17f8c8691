"""Processes that are known by a variable of their environment, which their children inherit.

As a program, this file ends those of a Ray when the process that started it is gone, as Ray leaves
processes and its folder behind when its owner is killed. It waits until its owner closes the pipe
to it, which the system does for a killed process. So it imports nothing of slimfl.
"""

import contextlib
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil

#: Environment variable with the folder of the Ray that a process belongs to.
RAY = "SLIMFL_RAY_FOLDER"

#: How long killed processes may take to end.
PATIENCE_S = 20.0


def marked(variable: str, value: str) -> dict[psutil.Process, dict[str, str]]:
    """The other processes of this user with this value, and their whole environment."""
    found = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):  # it has ended, or is another user's
            environment = process.environ()
            if process.pid != os.getpid() and environment.get(variable) == value:
                found[process] = environment
    return found


def living(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Those that run; a process that waits only for its parent's notice does not."""
    found = []
    for process in processes:
        with contextlib.suppress(psutil.Error):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def end(
    find: Callable[[], Iterable[psutil.Process]],
    ask: Callable[[psutil.Process], None],
    patience_s: float,
) -> list[psutil.Process]:
    """Ask processes to end until none is left.

    Args:
        find: The processes, and those that they have started meanwhile.
        ask: `psutil.Process.terminate` or `psutil.Process.kill`.
        patience_s: How long they may take.

    Returns:
        Those that still run.
    """
    deadline, asked = time.monotonic() + patience_s, set()
    while (left := living(find())) and time.monotonic() < deadline:
        for process in left:
            if process not in asked:
                asked.add(process)
                with contextlib.suppress(psutil.Error):
                    ask(process)
        time.sleep(0.05)
    return left


def clear_ray(folder: Path) -> None:
    """Kill all processes of the Ray in a folder, and remove the folder."""
    end(lambda: marked(RAY, str(folder)), psutil.Process.kill, PATIENCE_S)
    shutil.rmtree(folder, ignore_errors=True)


def main(folder: Path, owner: int) -> None:
    """Wait for the end of the owner of a Ray, then clean up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # a child of the owner may keep the pipe open after the owner has ended
    while os.getppid() == owner and not select.select([0], [], [], 1.0)[0]:
        pass
    clear_ray(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
