"""Run the cells that are not finished yet, several at a time, each in one process on one core.

A cell is a run folder, so whoever interrupts loses at most the round that each process is in, and
the next call goes on there. What a cell computes does not depend on where or when it runs.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import lru_cache
from pathlib import Path

from slimfl.config import DataSection, Experiment
from slimfl.data import Dataset
from slimfl.errors import RequestError, RunError
from slimfl.experiments.cells import Cell
from slimfl.federation import RunFolder, Simulation, finished
from slimfl.federation import run as run_simulation
from slimfl.federation.run_folder import EXPERIMENT, METRICS
from slimfl.federation.simulation import load_dataset

#: Tells how far all cells are: (work done, work in all, cells finished, cells in all).
Watcher = Callable[[float, float, int, int], None]

_POLL_S = 0.5


def complete(cell: Cell, cache: Path) -> Path:
    """Run a cell to its end in this process, or go on with it; returns its run folder."""
    path = cell.folder(cache)
    if (path / EXPERIMENT).exists():
        folder = RunFolder.open(path)
        experiment = folder.experiment()
        if finished(experiment, folder.metrics()):
            return path
        sim = Simulation(experiment, dataset=_dataset(experiment.data))
        sim.check_provenance(folder.provenance())
    else:
        sim = Simulation(cell.experiment, dataset=_dataset(cell.experiment.data))
        folder = RunFolder.create(path, sim.experiment, sim.provenance())
    run_simulation(sim, folder)
    return path


def is_complete(cell: Cell, cache: Path) -> bool:
    """Whether a cell has nothing left to run."""
    path = cell.folder(cache)
    return (path / EXPERIMENT).exists() and finished(
        cell.experiment, RunFolder.open(path).metrics()
    )


def run_cells(
    cells: Iterable[Cell], cache: Path, workers: int, watch: Watcher | None = None
) -> None:
    """Finish all cells, `workers` at a time; a cell asked for twice is run once."""
    wanted = list(dict.fromkeys(cells))
    open_ = [cell for cell in wanted if not is_complete(cell, cache)]
    if not open_:
        return
    progress = _Progress(wanted, open_, cache, watch)
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(workers, len(open_)), context, _begin, (os.getpid(),))
    try:
        futures = {pool.submit(complete, cell, cache): cell for cell in open_}
        waiting: set[Future[Path]] = set(futures)
        while waiting:
            done, waiting = wait(waiting, _POLL_S, FIRST_COMPLETED)
            for future in done:
                _check(future, futures[future])
            progress.tell()
    except BaseException:
        # a round under way is thrown away: its folder is intact without it
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown()


def _check(future: Future[Path], cell: Cell) -> None:
    try:
        future.result()
    except (RequestError, RunError) as error:
        raise type(error)(f"{cell.name}: {error}") from error
    except Exception as error:
        raise RunError(f"{cell.name}: {error}") from error


def _begin(parent: int) -> None:
    """A worker leaves an interrupt to its parent, and does not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _dataset(section: DataSection) -> Dataset:
    """The cells of one process share their dataset, however it is dealt to devices."""
    content = section.model_dump(include={"dataset", "dir", "train_samples", "test_samples"})
    return _load(DataSection(**content))


@lru_cache(maxsize=2)
def _load(section: DataSection) -> Dataset:
    return load_dataset(Experiment(data=section))


class _Progress:
    """Rounds on disk, weighed by their work."""

    def __init__(
        self, wanted: Sequence[Cell], open_: Sequence[Cell], cache: Path, watch: Watcher | None
    ) -> None:
        self.cells, self.cache, self.watch = list(open_), cache, watch
        self.count = len(wanted)
        self.total = sum(cell.effort * cell.experiment.rounds for cell in open_)

    def tell(self) -> None:
        if self.watch is None:
            return
        done, whole = 0.0, self.count - len(self.cells)
        for cell in self.cells:
            rounds = _lines(cell.folder(self.cache) / METRICS)
            done += cell.effort * rounds
            whole += rounds >= cell.experiment.rounds
        self.watch(done, self.total, whole, self.count)


def _lines(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n")
    except OSError:
        return 0
