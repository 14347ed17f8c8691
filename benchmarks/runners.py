"""Runners that take turns: processes of `worker.py`, started once and triggered for each turn.

Seconds mean little on a shared machine, so results are compared as ratios with their spread.
"""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any, Self

from benchmarks.work import Work
from slimfl.errors import RunError

#: Placeholder in a command for the time at which its process is launched.
STARTED = "@started"
#: Where `python -m benchmarks` works.
CHECKOUT = Path(__file__).parent.parent


class Runner:
    """One or more worker processes that work at the same time."""

    def __init__(self, name: str, commands: Sequence[Sequence[str]]) -> None:
        self.name, self.commands = name, commands
        self.processes: list[subprocess.Popen[str]] = []
        self.startup_s = 0.0
        self.peak_mb = 0.0

    def __enter__(self) -> Self:
        """Start the processes and wait until all are ready."""
        self.launch()
        self.startup_s = max(answer["startup_s"] for answer in self._answers())
        return self

    def launch(self) -> None:
        """Start the processes unless they are running."""
        if self.processes:
            return
        for command in self.commands:
            command = [str(time.time()) if part == STARTED else part for part in command]
            self.processes.append(
                subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    cwd=CHECKOUT,
                )
            )

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            if process.stdin is not None:
                process.stdin.close()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def once(self) -> dict[str, float]:
        """Work once; amounts are summed over the processes, the time is that of the slowest."""
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        answers = self._answers()
        self.peak_mb = max(self.peak_mb, sum(answer["peak_mb"] for answer in answers))
        return {
            "seconds": max(answer["seconds"] for answer in answers),
            **{
                key: sum(answer[key] for answer in answers)
                for key in ("images", "gflops", "multiply_adds", "native_share", "cpu_s")
                if key in answers[0]
            },
        }

    def _answers(self) -> list[dict[str, Any]]:
        answers = []
        for process in self.processes:
            assert process.stdout is not None
            line = process.stdout.readline()
            # skip what libraries print: the protocol's lines are JSON objects
            while line and not line.startswith("{"):
                line = process.stdout.readline()
            if not line:
                assert process.stderr is not None
                last = (process.stderr.read().strip().splitlines() or ["no message"])[-1]
                raise RunError(f"the runner {self.name!r} failed: {last}")
            answers.append(json.loads(line))
        return answers


def local_runner(name: str, work: Work, processes: int = 1) -> Runner:
    """A runner of this package; its devices are distributed over the processes."""
    commands = []
    for rank in range(processes):
        devices = len(range(rank, work.devices, processes))
        share = json.dumps(asdict(replace(work, devices=devices)))
        commands.append([sys.executable, "-m", "benchmarks.worker", name, STARTED, share])
    return Runner(name, commands)


def interleave(
    runners: Sequence[Runner], repetitions: int, launch_together: bool = False
) -> dict[str, list[dict[str, float]]]:
    """All runners in turn, repeatedly, so that disturbances affect all of them equally.

    Launched together, they are ready sooner, but their start-up times are meaningless.
    """
    with ExitStack() as stack:
        if launch_together:
            for runner in runners:
                runner.launch()
        for runner in runners:
            stack.enter_context(runner)
        results: dict[str, list[dict[str, float]]] = {runner.name: [] for runner in runners}
        for _ in range(repetitions):
            for runner in runners:
                results[runner.name].append(runner.once())
    return results


def rates(results: Sequence[dict[str, float]]) -> list[float]:
    """Images per second in every repetition."""
    return [result["images"] / result["seconds"] for result in results]


def ratio(a: Sequence[float], b: Sequence[float]) -> dict[str, float]:
    """a / b, repetition by repetition."""
    each = [x / y for x, y in zip(a, b, strict=True)]
    return spread(each)


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, smallest and largest."""
    return {"median": median(values), "min": min(values), "max": max(values)}
