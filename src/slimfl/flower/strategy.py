"""SlimFL as a Flower strategy, for a ServerApp of your own.

The strategy holds a `Simulation` whose engine waits for Flower's replies instead of fetching them:
who takes part, what arrives over the radio and what is merged is decided by the same lines of code
as in `slimfl run`.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from slimfl.config import Experiment
from slimfl.data import Dataset
from slimfl.engines import Missing, Outcome, Task
from slimfl.engines.flower.engine import FlowerEngine
from slimfl.engines.flower.messages import Order, parameters_record, read_parameters
from slimfl.errors import RequestError, RunError
from slimfl.federation import Line, Method, Simulation
from slimfl.federation.participation import cohort
from slimfl.nn import Vector
from slimfl.radio import Channel

log = logging.getLogger(__name__)


class SlimFLStrategy(Strategy):
    """Any method of slimfl, over its radio, with Flower's own loop.

    In a ServerApp of your own::

        @app.main()
        def main(grid, context):
            strategy = SlimFLStrategy(config.build({"engine": "flower", "rounds": 3}), grid)
            strategy.start(grid, strategy.initial_arrays(), num_rounds=3)
            print(strategy.lines[-1]["accuracy"])

    The devices run `slimfl.flower.client_app`. Evaluation happens on the server, as a part of
    aggregation; the lines of `metrics.jsonl` are in `lines`.
    """

    def __init__(
        self,
        experiment: Experiment,
        grid: Grid,
        *,
        dataset: Dataset | None = None,
        channel: Channel | None = None,
        method: Method | None = None,
    ) -> None:
        if experiment.engine != "flower":
            raise RequestError('a strategy works with devices of Flower: give engine = "flower"')
        self.simulation = Simulation(
            experiment, dataset=dataset, channel=channel, method=method, grid=grid
        )
        assert isinstance(self.simulation.engine, FlowerEngine)
        self.replies = _Replies(self.simulation.engine)
        self.simulation.engine = self.replies
        self.lines: list[Line] = []

    def initial_arrays(self) -> ArrayRecord:
        """The model that the first round starts from."""
        return parameters_record(self.simulation.global_model)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """An order for every device that takes part in the round."""
        sim = self.simulation
        sim.global_model, sim.round = read_parameters(arrays), server_round - 1
        who = cohort(sim.experiment.federation, sim.experiment.seed, server_round)
        return self.replies.orders(server_round, sim.global_model, sim.tasks(who.active), arrays)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """One round: the radio decides what arrives, the method merges it.

        Below the quorum the model stays as it was.
        """
        self.replies.received = list(replies)
        try:
            line = self.simulation.step()
        except RunError as error:
            log.warning("%s", error)
            return None, None
        self.lines.append(line)
        return parameters_record(self.simulation.global_model), MetricRecord(_numbers(line))

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Nobody is asked: the server evaluates."""
        return []

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Nothing: the server's evaluation stands with the training metrics."""
        return None

    def summary(self) -> None:
        """Say what runs."""
        experiment = self.simulation.experiment
        log.info("%s, %d devices", experiment.method, experiment.federation.devices)


class _Replies:
    """The engine's second half alone: tells what the replies that Flower fetched come to."""

    name = FlowerEngine.name

    def __init__(self, engine: FlowerEngine) -> None:
        self.engine, self.threads = engine, engine.threads
        self.evaluate = engine.evaluate
        self.states = engine.states
        self.device_states = engine.device_states
        self.restore_device_states = engine.restore_device_states
        self.received: list[Message] = []
        self._asked: dict[int, Order] = {}  # by node

    def orders(
        self, round: int, start: Vector, tasks: Sequence[Task], arrays: ArrayRecord
    ) -> list[Message]:
        """The messages to the devices that are there."""
        nodes = self.engine.quorum(round, tasks)
        self._asked = {
            nodes[task.device]: self.engine.order(round, start, task)
            for task in tasks
            if task.device in nodes
        }
        return [self.engine.message(order, node, arrays) for node, order in self._asked.items()]

    def train(self, round: int, start: Vector, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """What came of the tasks, from the replies at hand."""
        outcomes: dict[int, Outcome] = {}
        for reply in self.received:
            order = self._asked.pop(reply.metadata.src_node_id, None)
            if order is None:
                log.warning("round %d: an answer that nobody waits for: ignored", round)
                continue
            outcomes[order.task.device] = self.engine.outcome(order, reply)
        self.received = []
        came = [
            outcomes.get(task.device, Missing(task.device, "it did not answer")) for task in tasks
        ]
        missing = [one for one in came if isinstance(one, Missing)]
        reasons = [f"device {one.device}: {one.reason}" for one in missing]
        self.engine.check_quorum(round, len(tasks), reasons)
        yield from came


def _numbers(line: Line) -> dict[str, Any]:
    """What Flower's metrics can hold of a line: numbers and lists of numbers, with flat names."""
    flat: dict[str, Any] = {}
    for key, value in line.items():
        if isinstance(value, dict):
            flat |= {f"{key}-{k}": v for k, v in value.items() if isinstance(v, int | float)}
        elif isinstance(value, int | float) or (isinstance(value, list) and value):
            flat[key] = value
    return flat
