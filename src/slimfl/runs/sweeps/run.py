"""Finish jobs on this machine or on a cluster."""

from __future__ import annotations

from collections.abc import Iterable

from slimfl.engines.machine import available_cores
from slimfl.errors import RequestError
from slimfl.runs.progress import Progress, Watcher
from slimfl.runs.sweeps.job import Job, is_complete
from slimfl.runs.sweeps.local import run_local


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
