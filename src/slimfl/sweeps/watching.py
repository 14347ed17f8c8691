"""How far all jobs are, in one number."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from slimfl.sweeps.job import Job

#: Tells (work done, work in all, jobs finished, jobs in all).
Watcher = Callable[[float, float, int, int], None]


class Progress:
    """Rounds weighed by their work."""

    def __init__(self, jobs: Sequence[Job], already_complete: int, watch: Watcher | None) -> None:
        self.jobs, self.before, self.watch = list(jobs), already_complete, watch
        self.total = sum(job.effort * job.rounds for job in jobs)

    def tell(self, rounds_done: Sequence[int]) -> None:
        """Pass on how many rounds every job has behind it."""
        if self.watch is None:
            return
        pairs = list(zip(self.jobs, rounds_done, strict=True))
        done = sum(job.effort * min(rounds, job.rounds) for job, rounds in pairs)
        finished = sum(rounds >= job.rounds for job, rounds in pairs)
        count = self.before + len(self.jobs)
        self.watch(done, self.total, self.before + finished, count)
