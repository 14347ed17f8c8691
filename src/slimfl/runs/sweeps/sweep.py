"""A sweep from Python: every combination of some settings, run in parallel."""

from __future__ import annotations

import copy
import itertools
import math
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from slimfl import experiment as config
from slimfl.errors import RequestError
from slimfl.experiment import Experiment
from slimfl.experiment.naming import module_of, trusting
from slimfl.experiment.short_names import short_name
from slimfl.methods import expand
from slimfl.round import Callback
from slimfl.runs import api
from slimfl.runs.progress import display
from slimfl.runs.run import Run, Runs
from slimfl.runs.storage.run_folder import EXPERIMENT
from slimfl.runs.sweeps.job import Job, complete
from slimfl.runs.sweeps.names import run_name
from slimfl.runs.sweeps.run import check_place, run_jobs
from slimfl.runs.trackers import check_trackers

#: Maximum number of points of a sweep, each of which is at least one run.
MOST_POINTS = 10_000

#: Parts that may be given as objects, which cannot be sent to other processes.
_PARTS = ("dataset", "network", "channel", "method")


def sweep(
    path: config.Source = None,
    *,
    out: Path | str | None = None,
    workers: int | None = None,
    on: str = "local",
    callbacks: Sequence[Callback | str | dict[str, Any]] = (),
    progress: bool = False,
    trust: Iterable[str] = (),
    **values: Any,
) -> Runs:
    """Run every combination of the settings that are lists.

    `slimfl.sweep(alpha=[0.1, 1], channel=["good", "poor"], seed=[0, 1], rounds=10)` is eight runs.
    A list is several values and a tuple is one: `widths=[(0.5, 1.0), (0.25, 1.0)]`.

    Args:
        path: A TOML file to start from, what such a file contains as a dictionary, or an
            `Experiment`; the defaults otherwise.
        out: The folder for the run folders. The same call again goes on where it stopped. Without
            it, the folders are temporary and go when the result does.
        workers: How many runs at once, each in a process of its own; one per core by default, and
            with 1 the runs take turns in this process. Own objects (a dataset, network,
            channel, method or callback) cannot leave this process: then the runs take turns.
        on: `local`, `ray` or the address of a Ray cluster, such as `ray://head:10001`.
        callbacks: Who watches each run.
        progress: Show how far all runs are.
        trust: Modules that a name in the TOML file may be imported from.
        **values: Settings, by the names that `slimfl.run` knows.
    """
    check_place(on)
    axes = {key: value for key, value in values.items() if isinstance(value, list)}
    _check_axes(axes)
    points = [
        {**values, **dict(zip(axes, point, strict=True))}
        for point in itertools.product(*axes.values())
    ]
    modules = [trust] if isinstance(trust, str) else list(trust)
    folder, keeper = (Path(out), None) if out is not None else _temporary_folder()
    objects = [one for one in callbacks if isinstance(one, Callback)]
    objects += [one for point in points for one in _objects(point).values()]
    if objects:
        given = {"callbacks": callbacks, "progress": progress, "trust": modules}
        named = _named(points, axes, path)
        runs = Runs([_here(point, path, folder / at, given) for at, point, _ in named], folder)
    else:
        if callbacks:
            points = [{**point, "callbacks": list(callbacks)} for point in points]
        jobs = [Job(folder / at, one) for at, _, one in _named(points, axes, path)]
        typed = [name for point in points for name in config.typed_names(**point)]
        modules += filter(None, map(module_of, typed))
        with trusting(modules):
            _finish(jobs, on, workers, progress)
            runs = Runs([_loaded(job.folder, modules) for job in jobs], folder)
    if keeper is not None:
        # every run keeps the folder alive that its network is read from
        for holder in (runs, *runs):
            holder.__dict__["_folder_keeper"] = keeper
    return runs


def _check_axes(axes: Mapping[str, list[Any]]) -> None:
    for key, several in axes.items():
        if not several:
            raise RequestError(f"{key} is an empty list; give at least one value")
    if math.prod(map(len, axes.values())) > MOST_POINTS:
        raise RequestError(f"the sweep has more than {MOST_POINTS:,} points; give fewer values")


def _objects(point: Mapping[str, Any]) -> dict[str, Any]:
    return {key: point[key] for key in _PARTS if not isinstance(point.get(key), str | None)}


def _named(
    points: Sequence[dict[str, Any]], axes: Mapping[str, list[Any]], path: config.Source
) -> list[tuple[str, dict[str, Any], Experiment]]:
    """Every run once: folder name, point of the sweep, and experiment."""
    found: dict[str, tuple[str, dict[str, Any], Experiment]] = {}
    for point in points:
        objects = _objects(point)
        plain = {key: value for key, value in point.items() if key not in objects}
        setting = [
            f"{short_name(key.replace('__', '.'))}={_word(point[key], several)}"
            for key, several in axes.items()
            if key not in ("method", "seed")
        ]
        for one in config.load(path, **plain):
            own = objects.get("method")
            names = expand([one.method], one.model.widths) if own is None else [own.name]
            for method in names:
                name = run_name([method, *setting, f"seed{one.seed}"])
                # one core per run, as many runs as there are cores
                settled = {"method": method, "threads": one.threads or 1}
                found.setdefault(name, (name, point, one.model_copy(update=settled)))
    for _, _, one in found.values():
        check_trackers(one.track)
    return list(found.values())


def _word(value: Any, several: list[Any]) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, str | int | float):
        return str(value)
    return f"{type(value).__name__}{several.index(value)}"


def _here(point: dict[str, Any], path: config.Source, folder: Path, given: dict[str, Any]) -> Run:
    """Run one point in this process, or resume it."""
    objects = _objects(point)
    if (folder / EXPERIMENT).is_file():
        watching = [one for one in given["callbacks"] if isinstance(one, Callback)]
        return api.resume(folder, **{**given, "callbacks": watching}, **objects)
    if "network" in objects:  # every run starts from the given network
        point = {**point, "network": copy.deepcopy(objects["network"])}
    made: Run = api.run(path, out=folder, **given, **point)
    return made


def _loaded(folder: Path, modules: list[str]) -> Run:
    run = api.load(folder, trust=modules)
    assert isinstance(run, Run)
    return run


def _finish(jobs: list[Job], on: str, workers: int | None, progress: bool) -> None:
    shown = display() if progress else None

    def watch(done: float, total: float, finished: int, runs: int) -> None:
        if shown is not None:
            shown.show(done, total, f"{finished} of {runs} runs, {done / total:.0%} of the work")

    try:
        if on == "local" and workers == 1:  # no other process is needed
            for number, job in enumerate(jobs, 1):
                complete(job)
                watch(number, len(jobs), number, len(jobs))
        else:
            run_jobs(jobs, on, workers=workers, watch=watch, verify=True)
    finally:
        if shown is not None:
            shown.close()


class _FolderKeeper:
    """Removes a folder when this object is no longer referenced."""

    def __init__(self, path: Path) -> None:
        weakref.finalize(self, shutil.rmtree, path, ignore_errors=True)


def _temporary_folder() -> tuple[Path, _FolderKeeper]:
    folder = Path(tempfile.mkdtemp(prefix="slimfl-sweep-"))
    return folder, _FolderKeeper(folder)
