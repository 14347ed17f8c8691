"""Many runs in parallel: on the cores of this machine, or on a Ray cluster.

A job is a run folder and the experiment to finish in it. Its results do not depend on where or when
it runs, or on what else runs.
"""

from slimfl.runs.progress import Watcher as Watcher
from slimfl.runs.sweeps.job import Job as Job
from slimfl.runs.sweeps.job import complete as complete
from slimfl.runs.sweeps.job import is_complete as is_complete
from slimfl.runs.sweeps.job import run_name as run_name
from slimfl.runs.sweeps.job import shared_dataset as shared_dataset
from slimfl.runs.sweeps.job import simulation_of as simulation_of
from slimfl.runs.sweeps.local import check_place as check_place
from slimfl.runs.sweeps.local import run_jobs as run_jobs
