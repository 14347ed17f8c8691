"""Many runs in parallel: on the cores of this machine, or on a Ray cluster.

A job is a run folder and the experiment to finish in it. Its results do not depend on where or when
it runs, or on what else runs.
"""

from slimfl.runs.progress import Watcher
from slimfl.runs.sweeps.job import (
    Job,
    beginning,
    complete,
    is_complete,
    run_name,
    same_rounds,
    shared_dataset,
    simulation_of,
)
from slimfl.runs.sweeps.local import check_place, run_jobs

__all__ = [
    "Job",
    "Watcher",
    "beginning",
    "check_place",
    "complete",
    "is_complete",
    "run_jobs",
    "run_name",
    "same_rounds",
    "shared_dataset",
    "simulation_of",
]
