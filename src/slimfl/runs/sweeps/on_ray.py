"""Jobs as tasks of a Ray cluster, which needs no shared disk.

A task gets the files of its run folder and returns them at the end. If a worker is lost, Ray starts
the task again elsewhere, with the same results.
"""

from __future__ import annotations

import logging
import os
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from slimfl import experiment as config
from slimfl.errors import RequestError, RunError
from slimfl.experiment import Experiment
from slimfl.experiment.naming import trusted, trusting
from slimfl.extras import why_missing
from slimfl.files import write_atomically
from slimfl.nn import Vector
from slimfl.round import Callback, RoundRecord
from slimfl.runs.progress import Progress
from slimfl.runs.sweeps.job import Job, complete

#: How often a task is started again if its worker is lost.
RETRIES = 3

Files = dict[str, bytes]

_POLL_S = 0.5


def run_on_ray(jobs: Sequence[Job], address: str, progress: Progress) -> None:
    """Finish all jobs on a cluster: `ray` starts one here, `ray://host:port` joins another."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    problem = why_missing("ray", "ray", "psutil")
    if problem is not None:
        raise RequestError(f"{problem}, or choose --on local")
    if any(job.experiment.engine == "flower" for job in jobs):
        raise RequestError("the flower engine starts its own Ray; use --on local")
    with _started() if address == "ray" else _joined(address) as ray:
        _run(ray, jobs, progress)


@contextmanager
def _started() -> Iterator[Any]:
    """A cluster of this process."""
    from slimfl.flower.local_ray import LocalRay  # of the extra

    with LocalRay() as local:
        import ray  # imported here, as it reads the environment that was just prepared

        try:
            ray.init(**local.init_args)
            local.check()
            yield ray
        finally:
            ray.shutdown()


@contextmanager
def _joined(address: str) -> Iterator[Any]:
    """An existing cluster; its owners are responsible for who can reach it."""
    import ray

    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError) as error:
        raise RequestError(
            f"there is no Ray cluster at {address} ({error}); start one, or use --on local"
        ) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _run(ray: Any, jobs: Sequence[Job], progress: Progress) -> None:
    counter = ray.remote(num_cpus=0)(_Counter).remote(len(jobs))
    task = ray.remote(num_cpus=1, max_retries=RETRIES)(_work)
    waiting = {
        task.remote(
            number, config.dump(job.experiment), job.until, _read(job.folder), counter, trusted()
        ): job
        for number, job in enumerate(jobs)
    }
    while waiting:
        done, _ = ray.wait(list(waiting), timeout=_POLL_S, fetch_local=True)
        for reference in done:
            job = waiting.pop(reference)
            try:
                files = ray.get(reference)
            except ray.exceptions.RayTaskError as error:
                raise RunError(f"{job.name}: {error.cause or error}") from error
            except ray.exceptions.RayError as error:
                raise RunError(
                    f"{job.name}: its worker was lost {RETRIES + 1} times ({error}); run the same "
                    "command again to continue; finished runs are kept"
                ) from error
            _write(job.folder, files)
        progress.tell(ray.get(counter.rounds.remote()))


class _Counter:
    """An actor on the cluster that counts the finished rounds of every job."""

    def __init__(self, jobs: int) -> None:
        self._rounds = [0] * jobs

    def set(self, number: int, rounds: int) -> None:
        self._rounds[number] = rounds

    def rounds(self) -> list[int]:
        return self._rounds


class _Report(Callback):
    """Reports every round to the counter."""

    def __init__(self, number: int, counter: Any) -> None:
        self.number, self.counter = number, counter

    def on_start(self, experiment: Experiment, rounds_done: int) -> None:
        self.counter.set.remote(self.number, rounds_done)

    def on_round(self, record: RoundRecord, model: Callable[[], Vector]) -> None:
        self.counter.set.remote(self.number, record.round)


def _work(
    number: int,
    experiment: str,
    until: int | None,
    files: Files,
    counter: Any,
    modules: tuple[str, ...],
) -> Files:
    """A task: unpack the run folder, finish the run, pack it again."""
    with tempfile.TemporaryDirectory() as scratch, trusting(modules):
        folder = Path(scratch) / "run"
        _write(folder, files)
        job = Job(folder, config.build(tomllib.loads(experiment)), until)
        complete(job, [_Report(number, counter)])
        return _read(folder)


def _read(folder: Path) -> Files:
    """All files below a folder, by their path in it."""
    if not folder.is_dir():
        return {}
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def _write(folder: Path, files: Files) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
