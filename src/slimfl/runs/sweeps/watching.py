"""The progress of all jobs as one number."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from slimfl.runs.sweeps.job import Job

#: Called with (work done, total work, jobs finished, number of jobs).
Watcher = Callable[[float, float, int, int], None]


class Progress:
    """Sums up rounds, weighted by their work."""

    def __init__(self, jobs: Sequence[Job], already_complete: int, watch: Watcher | None) -> None:
        self.jobs, self.before, self.watch = list(jobs), already_complete, watch
        self.total = sum(job.effort * job.rounds for job in jobs)

    def tell(self, rounds_done: Sequence[int]) -> None:
        """Report the number of finished rounds of every job."""
        if self.watch is None:
            return
        pairs = list(zip(self.jobs, rounds_done, strict=True))
        done = sum(job.effort * min(rounds, job.rounds) for job, rounds in pairs)
        finished = sum(rounds >= job.rounds for job, rounds in pairs)
        count = self.before + len(self.jobs)
        self.watch(done, self.total, self.before + finished, count)
