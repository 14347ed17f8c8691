"""Two engines as one: what the fast one cannot train, the general one trains in the same round."""

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from slimfl.engines.base import Engine, Outcome, Score, Task
from slimfl.nn import Vector
from slimfl.training import Work

log = logging.getLogger(__name__)


class EngineWithFallback:
    """Sends each task to the first engine if it supports the work, else to the second.

    The second engine is created when it is first needed. Both share the devices' states.
    """

    def __init__(self, first: Engine, make_second: Callable[[], Engine]) -> None:
        self.first, self._make_second = first, make_second
        self.name, self.threads, self.states = first.name, first.threads, first.states
        self._obstacle = lru_cache(256)(first.supports)
        self._second: Engine | None = None
        self._said = False

    @property
    def second(self) -> Engine:
        """The general engine."""
        if self._second is None:
            self._second = self._make_second()
        return self._second

    def supports(self, work: Work) -> str | None:
        """Everything that either engine supports."""
        return self.first.supports(work) and self.second.supports(work)

    def train(self, round: int, start: Vector, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """Train every device with an engine that can; yields outcomes in the order of the tasks."""
        obstacles = {work: self._obstacle(work) for work in {task.work for task in tasks}}
        others = [task for task in tasks if obstacles[task.work] is not None]
        if not others:
            yield from self.first.train(round, start, tasks)
            return
        if not self._said:
            self._said = True
            log.warning(
                "round %d: %d of %d devices are trained by the %s engine: %s",
                round,
                len(others),
                len(tasks),
                self.second.name,
                obstacles[others[0].work],
            )
        ours = [task for task in tasks if obstacles[task.work] is None]
        from_first = self.first.train(round, start, ours)
        from_second = self.second.train(round, start, others)
        for task in tasks:
            yield next(from_first if obstacles[task.work] is None else from_second)

    def evaluate(
        self, parameters: Vector, widths: Sequence[int], *, by_label: bool = False
    ) -> list[Score]:
        """Evaluate with the fast engine."""
        return self.first.evaluate(parameters, widths, by_label=by_label)
