"""How a peer's worker talks to the bench, and how it ends.

The bench starts `worker.py STARTED WORK`. The worker prints one line of JSON when a first round is
over, then works once for every line it reads and prints a line for each. It ends, with every
process its framework has started, when its standard input closes: the bench closed it, or died.
"""

import argparse
import atexit
import contextlib
import ctypes
import json
import os
import queue
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

#: What is still at work so long after the bench has gone is ended; the bench waits 10 s.
CLOSING_S = 4.0
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

_scratch: list[Path] = []


@dataclass(frozen=True)
class Work:
    """One round of federated averaging: one local epoch on every device, then the mean."""

    devices: int
    images_per_device: int
    batch_size: int

    @property
    def images(self) -> int:
        """Images trained in a round."""
        return self.devices * self.images_per_device


@dataclass(frozen=True)
class Peer:
    """What a worker makes of its framework."""

    round: Callable[[], None]
    """Train all devices once and average; returns when the averaged model is there."""
    norm: Callable[[], float]
    """Euclidean norm of all parameters of the global model, for `--check`."""


def serve(prepare: Callable[[Work], Peer]) -> NoReturn:
    """Speak the protocol with what `prepare` makes; does not return."""
    parser = argparse.ArgumentParser()
    parser.add_argument("started", type=float, help="time.time() at launch")
    parser.add_argument("work", help="the work as JSON")
    parser.add_argument("--check", action="store_true", help="also print the parameters' norm")
    arguments = parser.parse_args()
    work = _read_work(arguments.work)
    channel = _Channel()
    try:
        peer = prepare(work)
        peer.round()  # the first round pays for buffers, compilers and caches
        channel.say(_checked({"startup_s": time.time() - arguments.started}, arguments.check, peer))
        for _ in channel.orders():
            begin = time.perf_counter()
            peer.round()
            seconds = time.perf_counter() - begin
            answer = {"seconds": seconds, "peak_mb": peak_mb(), "images": work.images}
            channel.say(_checked(answer, arguments.check, peer))
    except BaseException as error:
        channel.fail(error)
    channel.end(0)


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def scratch_folder() -> Path:
    """A folder for the framework's files; it goes when the worker ends."""
    folder = Path(tempfile.mkdtemp(prefix="peer-"))
    _scratch.append(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def die_with_parent() -> None:
    """Have the kernel end this process when the one that started it ends (Linux only)."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def peak_mb() -> float:
    """Peak resident memory of this process and all it has started; shared pages count in each."""
    return sum(_peak_kb(pid) for pid in [os.getpid(), *_descendants()]) / 1024


def _read_work(text: str) -> Work:
    given = json.loads(text)
    if given.get("kind", "fedavg") != "fedavg":
        sys.exit("peers do the work 'fedavg' only")
    if given.get("cohort") not in (None, given["devices"]):
        sys.exit("peers ask all devices in every round")
    return Work(given["devices"], given["images_per_device"], given["batch_size"])


def _checked(answer: dict[str, float], check: bool, peer: Peer) -> dict[str, float]:
    return {**answer, "norm": peer.norm()} if check else answer


class _Channel:
    """The bench's pipes, kept from the framework and from the processes that it starts.

    Frameworks print; a full pipe that nobody reads would stop them, and a process that outlives the
    worker would keep the pipe open. So the standard streams are a file from here on.
    """

    def __init__(self) -> None:
        self._in, self._out, self._err = (
            os.fdopen(os.dup(fd), mode) for fd, mode in enumerate("rww")
        )
        self._log = tempfile.TemporaryFile("w+b")  # noqa: SIM115 - open as long as the process
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(self._log.fileno(), 1)
        os.dup2(self._log.fileno(), 2)
        self._orders: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._ending = threading.Lock()
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
        signal.signal(signal.SIGTERM, lambda *_: self.end(1))
        threading.Thread(target=self._listen, daemon=True).start()

    def say(self, answer: dict[str, float]) -> None:
        self._out.write(json.dumps(answer) + "\n")
        self._out.flush()

    def orders(self) -> Iterator[str]:
        return iter(self._orders.get, None)

    def fail(self, error: BaseException) -> NoReturn:
        traceback.print_exception(error)
        sys.stderr.flush()
        self._log.seek(0)
        self._err.write(self._log.read()[-20_000:].decode(errors="replace"))
        self._err.write(f"\n{type(error).__name__}: {next(iter(str(error).splitlines()), '')}\n")
        self._err.flush()
        self.end(1)

    def end(self, status: int) -> NoReturn:
        """End with all descendants; orphans of theirs have become children of this process."""
        with self._ending:
            while pids := _descendants():
                for pid in pids:
                    _kill(pid)
                _reap()
            for folder in _scratch:
                shutil.rmtree(folder, ignore_errors=True)
            os._exit(status)

    def _listen(self) -> None:
        for line in self._in:
            self._orders.put(line)
        self._orders.put(None)
        time.sleep(CLOSING_S)
        self.end(1)


def _descendants() -> list[int]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            after_name = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(after_name[1]), []).append(int(entry.name))
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def _peak_kb(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line[:6] == "VmHWM:"), 0)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    time.sleep(0.01)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
