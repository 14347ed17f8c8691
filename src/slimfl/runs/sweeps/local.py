"""Jobs on the cores of this machine, one process each.

An interrupt loses at most the current round of each process: a job is a run folder, and the next
call resumes there.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager

from slimfl.engines.machine import available_cores
from slimfl.errors import RequestError, RunError
from slimfl.runs.progress import Progress, Watcher
from slimfl.runs.sweeps.job import Job, complete, is_complete

_POLL_S = 0.5


def run_local(jobs: Sequence[Job], workers: int, progress: Progress) -> None:
    """Finish all jobs, `workers` at a time."""
    context = multiprocessing.get_context("spawn")
    with _current_folder_closed():
        pool = ProcessPoolExecutor(min(workers, len(jobs)), context, _begin, (os.getpid(),))
    try:
        with _interrupts_wait(), _main_stays_here(), _current_folder_closed():
            futures = {pool.submit(_work, complete, job): job for job in jobs}
        waiting: set[Future[None]] = set(futures)
        while waiting:
            done, waiting = wait(waiting, _POLL_S, FIRST_COMPLETED)
            for future in done:
                _check(future, futures[future])
            progress.tell([job.rounds_done for job in jobs])
    except BaseException:
        # the current round is lost, but the folder stays intact
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown()


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Hide Ctrl-C from processes started in the block; this one gets it at the end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _main_stays_here() -> Iterator[None]:
    """Keep processes started in the block from running the user's script again.

    They do not need it, and a script without `if __name__ == "__main__"` would start its whole
    sweep again in each of them.
    """
    main = sys.modules["__main__"]
    file, spec = vars(main).pop("__file__", None), main.__spec__
    try:
        main.__spec__ = None
        yield
    finally:
        main.__spec__ = spec
        if file is not None:
            main.__file__ = file


@contextmanager
def _current_folder_closed() -> Iterator[None]:
    """Keep processes started in the block from taking modules from the current folder.

    They begin with `python -c`, which searches that folder before the standard library.
    """
    name = "PYTHONSAFEPATH"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


class _Stopped(BaseException):
    """The parent asked this process to end."""


def _work(complete: Callable[[Job], object], job: Job) -> None:
    """Do a job; if asked to stop, remove incomplete files before ending."""

    def stop(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise _Stopped

    signal.signal(signal.SIGTERM, stop)
    try:
        complete(job)
    except _Stopped:
        # returning would start the next job
        os._exit(128 + signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _check(future: Future[None], job: Job) -> None:
    try:
        future.result()
    except (RequestError, RunError) as error:
        raise type(error)(f"{job.name}: {error}") from error
    except Exception as error:
        raise RunError(f"{job.name}: {error}") from error


def _begin(parent: int) -> None:
    """Make a worker end with its parent."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def check_place(on: str) -> None:
    """Refuse a place where no job can run, before anything is created."""
    if on not in ("local", "ray") and not on.startswith("ray://"):
        raise RequestError(f"--on takes local, ray or ray://HOST:PORT, not {on!r}")


def run_jobs(
    jobs: Iterable[Job],
    on: str = "local",
    *,
    workers: int | None = None,
    watch: Watcher | None = None,
    verify: bool = False,
) -> None:
    """Finish all jobs; a folder that is named twice is run once.

    `on` is `local` (one process per core, or as many as `workers`), `ray` (a cluster started on
    this machine) or the address of one, such as `ray://head:10001`. With `verify`, the last
    checkpoint of complete runs is read and, if it is damaged, recomputed.
    """
    check_place(on)
    wanted = list({job.folder: job for job in jobs}.values())
    unfinished = [job for job in wanted if not is_complete(job, verify=verify)]
    if not unfinished:
        return
    progress = Progress(unfinished, watch, len(wanted) - len(unfinished))
    if on == "local":
        run_local(unfinished, workers or available_cores(), progress)
    else:
        from slimfl.runs.sweeps.on_ray import run_on_ray

        run_on_ray(unfinished, on, progress)
