"""SlimFL as a Flower strategy, for your own ServerApp.

The strategy calls the two halves of a round of `Simulation`: `plan` before Flower sends its
messages, and `collect` when it has the replies. So the same code as in `slimfl run` decides who
takes part, what arrives over the radio and what is merged.
"""

import logging
from collections.abc import Iterable
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from slimfl.data import Dataset
from slimfl.engines import Missing, Outcome
from slimfl.errors import RequestError, RunError
from slimfl.experiment import Experiment
from slimfl.flower.connect import deployed
from slimfl.flower.engine import FlowerEngine
from slimfl.flower.messages import Order, parameters_record, read_parameters
from slimfl.methods import Method
from slimfl.radio import Channel
from slimfl.round import Plan, RoundRecord, Simulation

log = logging.getLogger(__name__)


class SlimFLStrategy(Strategy):
    """Any method of slimfl over its radio, in Flower's own loop.

    In a ServerApp of your own::

        @app.main()
        def main(grid, context):
            strategy = SlimFLStrategy(config.build({"engine": "flower", "rounds": 3}), grid)
            strategy.start(grid, strategy.initial_arrays(), num_rounds=3)
            print(strategy.lines[-1].accuracy)

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
            raise RequestError('a strategy needs devices of Flower; set engine = "flower"')
        if experiment.time.mode == "asynchronous":
            raise RequestError(
                "Flower's own loop needs rounds that all devices start together; use `slimfl run`, "
                "or another time.mode"
            )
        self.simulation = Simulation(
            experiment, dataset=dataset, channel=channel, method=method, engine=deployed(grid)
        )
        assert isinstance(self.simulation.engine, FlowerEngine)
        self.engine = self.simulation.engine
        self.lines: list[RoundRecord] = []
        self._plan: Plan | None = None
        self._orders: dict[int, Order] = {}
        """The orders of this round, by node."""

    def initial_arrays(self) -> ArrayRecord:
        """The model that the first round starts from."""
        return parameters_record(self.simulation.global_model)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """An order for every connected device that takes part in the round."""
        sim = self.simulation
        sim.state.model, sim.state.round = read_parameters(arrays), server_round - 1
        self._plan = sim.plan()
        tasks = self._plan.tasks
        nodes = self.engine.quorum(server_round, tasks)
        self._orders = {
            nodes[task.device]: self.engine.order(server_round, sim.global_model, task)
            for task in tasks
            if task.device in nodes
        }
        return [self.engine.message(order, node, arrays) for node, order in self._orders.items()]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """One round: the radio decides what arrives, the method merges it.

        Below the quorum the model does not change.
        """
        assert self._plan is not None
        try:
            outcomes = self._outcomes(self._plan, replies)
        except RunError as error:
            log.warning("%s", error)
            # the round is over for the channel as well: advance its state
            self.simulation.state.channel.arrays = self._plan.channel_state
            return None, None
        line = self.simulation.collect(self._plan, iter(outcomes))
        self.lines.append(line)
        return parameters_record(self.simulation.global_model), MetricRecord(_numbers(line))

    def _outcomes(self, plan: Plan, replies: Iterable[Message]) -> list[Outcome]:
        """The outcomes of the plan's tasks; raises `RunError` below the quorum."""
        came: dict[int, Outcome] = {}
        for reply in replies:
            order = self._orders.pop(reply.metadata.src_node_id, None)
            if order is None:
                log.warning("round %d: ignored an unexpected answer", plan.round)
                continue
            came[order.task.device] = self.engine.outcome(order, reply)
        outcomes = [
            came.get(task.device, Missing(task.device, "it did not answer")) for task in plan.tasks
        ]
        missing = [one for one in outcomes if isinstance(one, Missing)]
        reasons = [f"device {one.device}: {one.reason}" for one in missing]
        self.engine.check_quorum(plan.round, len(plan), reasons)
        return outcomes

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """No messages, as the server evaluates."""
        return []

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Nothing, as the server's evaluation is part of the training metrics."""
        return None

    def summary(self) -> None:
        """Log what runs."""
        experiment = self.simulation.experiment
        log.info("%s, %d devices", experiment.method, experiment.federation.devices)


def _numbers(line: RoundRecord) -> dict[str, Any]:
    """The part of a line that fits Flower's metrics: numbers and lists, with flat names."""
    flat: dict[str, Any] = {}
    for key, value in line.as_json().items():
        if isinstance(value, dict):
            flat |= {f"{key}-{k}": v for k, v in value.items() if isinstance(v, int | float)}
        elif isinstance(value, int | float) or (isinstance(value, list) and value):
            flat[key] = value
    return flat
