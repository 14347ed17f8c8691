"""The engine: sends orders and collects answers, with a quorum and deadlines."""

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence

import httpx
from flwr.app import ArrayRecord, Message, MessageType
from flwr.common.constant import ErrorCode

from slimfl import experiment as config
from slimfl.engines.base import Engine, Missing, Outcome, Score, Task, Workload
from slimfl.engines.device_states import DeviceStates
from slimfl.errors import RunError
from slimfl.flower.connect import Connection
from slimfl.flower.messages import (
    QUOTED,
    Answer,
    BadAnswerError,
    Order,
    parameters_record,
)
from slimfl.nn import Vector

log = logging.getLogger(__name__)

#: Number of open orders: all devices of most federations, yet few enough to keep in memory.
WINDOW = 256

#: Number of orders per request, as the SuperLink refuses very large ones.
BATCH = 32

#: Flower's error codes for an order that expired before its answer came.
EXPIRED = (ErrorCode.MESSAGE_UNAVAILABLE, ErrorCode.REPLY_MESSAGE_UNAVAILABLE)

#: The server polls for answers at intervals that grow between these limits.
POLL_S = (0.02, 0.5)


class FlowerEngine:
    """Sends tasks through Flower; a local engine evaluates."""

    name = "flower"

    def __init__(
        self, workload: Workload, local: Engine, connect: Callable[[], Connection]
    ) -> None:
        experiment = workload.experiment
        self.section, self.training = experiment.flower, experiment.training
        self.local, self.threads = local, local.threads
        self.width_count = len(experiment.model.widths)
        self.moments = workload.dataset.normalisation(experiment.data.normalise)
        self.data_sha256 = workload.dataset.checksum
        # devices that bring their own data alone know how many samples they hold
        own_data = experiment.data.partition == "own"
        self.samples = None if own_data else workload.partition.sizes
        self.description = config.dump(experiment)
        self.states = DeviceStates(keep=experiment.training.optimiser_state == "kept")
        self._connect = connect
        self._connection: Connection | None = None

    @property
    def connection(self) -> Connection:
        """Opened when it is first needed, as a simulation takes seconds to start."""
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def order(self, round: int, start: Vector, task: Task) -> Order:
        """The order for a device."""
        return Order(
            experiment=self.description,
            round=round,
            task=task,
            start=start,
            moments=self.moments,
            data_sha256=self.data_sha256,
            state=self.states.get(task.device) or {},
        )

    def message(self, order: Order, node: int, start: ArrayRecord) -> Message:
        """The order as a message that expires when the server stops waiting for the answer."""
        return Message(
            order.record(start),
            dst_node_id=node,
            message_type=MessageType.TRAIN,
            ttl=self.section.round_timeout_s,
            group_id=str(order.round),
        )

    def outcome(self, order: Order, reply: Message) -> Outcome:
        """The outcome of a reply; stores the device's state for its next round."""
        device = order.task.device
        if reply.has_error():
            if reply.error.code in EXPIRED:
                return self.late(device)
            reason = str(reply.error.reason or reply.error.code)[:QUOTED]
            plain = "".join(each if each.isprintable() else " " for each in reason)
            return Missing(device, f"it failed: {plain}")
        if not reply.has_content():
            return Missing(device, "its answer is empty")
        samples = None if self.samples is None else int(self.samples[device])
        try:
            answer = Answer.read(reply.content, order, self.training, self.width_count, samples)
        except BadAnswerError as error:
            return Missing(device, str(error))
        self.states.put(device, answer.state)
        return answer.update

    def late(self, device: int) -> Missing:
        """The outcome of an order that was not answered in time."""
        return Missing(device, f"it did not answer within {self.section.round_timeout_s:g} s")

    def train(self, round: int, start: Vector, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """Send the tasks and yield their outcomes; raises `RunError` below the quorum."""
        if not tasks:
            return
        try:
            nodes = self.quorum(round, tasks)
            post = _Post(self, round, start, nodes)
            reasons: list[str] = []
            batches = [tasks[at : at + BATCH] for at in range(0, len(tasks), BATCH)]
            for number, batch in enumerate(batches):
                last = number + WINDOW // BATCH
                for later in batches[:last] if number == 0 else batches[last - 1 : last]:
                    post.send(later)
                for task in batch:
                    outcome = post.wait_for(task.device)
                    if isinstance(outcome, Missing):
                        reasons.append(f"device {task.device}: {outcome.reason}")
                    yield outcome
        except httpx.HTTPError as error:
            raise RunError(
                f"round {round}: the SuperLink does not answer ({error}); the run folder is intact "
                "and `slimfl resume` continues after the last complete round"
            ) from error
        self.check_quorum(round, len(tasks), reasons)

    def check_quorum(self, round: int, asked: int, reasons: Sequence[str]) -> None:
        """Raise `RunError` if too few devices answered; `reasons` has one for each that did not."""
        answered, needed = asked - len(reasons), self._needed(asked)
        if answered < needed:
            raise RunError(
                f"round {round}: {answered} of {asked} devices answered but the quorum is {needed} "
                f"({reasons[-1]}); the run folder is intact and `slimfl resume` continues after "
                "the last complete round"
            )

    def _needed(self, asked: int) -> int:
        return math.ceil(self.section.quorum * asked)

    def quorum(self, round: int, tasks: Sequence[Task]) -> dict[int, int]:
        """Wait for a quorum; returns the nodes of the connected devices."""
        deadline = time.monotonic() + self.section.wait_s
        needed = self._needed(len(tasks))
        told: list[int] = []
        while True:
            nodes = self.connection.nodes()
            absent = [task.device for task in tasks if task.device not in nodes]
            if len(tasks) - len(absent) >= needed:
                return nodes
            names = ", ".join(map(str, absent))
            if time.monotonic() > deadline:
                raise RunError(
                    f"round {round} waited {self.section.wait_s:g} s for a quorum of {needed} "
                    f"devices, but these are missing: {names}; start them, "
                    "then `slimfl resume` continues after the last complete round"
                )
            if absent != told:
                log.warning("round %d: waiting for devices %s", round, names)
                told = absent
            time.sleep(POLL_S[1])

    def evaluate(
        self, parameters: Vector, widths: Sequence[int], *, by_label: bool = False
    ) -> list[Score]:
        """Score the given widths on the server's test set."""
        return self.local.evaluate(parameters, widths, by_label=by_label)


class _Post:
    """The messages of one round: who was asked, until when, and the outcomes."""

    def __init__(
        self, engine: FlowerEngine, round: int, start: Vector, nodes: dict[int, int]
    ) -> None:
        self.engine, self.round, self.start, self.nodes = engine, round, start, nodes
        self.grid = engine.connection.grid
        self.start_record = parameters_record(start)  # one copy for all messages
        self.open: dict[str, tuple[Order, float]] = {}  # by message id, with the deadline
        self.outcomes: dict[int, Outcome] = {}

    def send(self, tasks: Sequence[Task]) -> None:
        """Send one batch of orders; devices that are not connected are missing at once."""
        orders = {}
        for task in tasks:
            if task.device in self.nodes:
                order = self.engine.order(self.round, self.start, task)
                node = self.nodes[task.device]
                orders[task.device] = order, self.engine.message(order, node, self.start_record)
            else:
                self.outcomes[task.device] = Missing(task.device, "it is not there")
        if not orders:
            return
        accepted = set(self.grid.push_messages([letter for _, letter in orders.values()]))
        deadline = time.monotonic() + self.engine.section.round_timeout_s
        for device, (order, letter) in orders.items():
            # the SuperLink does not accept messages to nodes that left meanwhile
            if letter.metadata.message_id in accepted:
                self.open[letter.metadata.message_id] = order, deadline
            else:
                self.outcomes[device] = Missing(device, "it could not be asked")

    def wait_for(self, device: int) -> Outcome:
        """The outcome of a device's task; waits at most until its deadline."""
        pause = POLL_S[0]
        while device not in self.outcomes:
            if self._collect():
                pause = POLL_S[0]
            else:
                time.sleep(pause)
                pause = min(2 * pause, POLL_S[1])
        return self.outcomes.pop(device)

    def _collect(self) -> bool:
        """Process the answers that have come; False if there were none."""
        replies = list(self.grid.pull_messages(list(self.open)))
        for reply in replies:
            asked = self.open.pop(reply.metadata.reply_to_message_id, None)
            if asked is None:
                log.warning(
                    "round %d: ignored an unexpected answer from node %d",
                    self.round,
                    reply.metadata.src_node_id,
                )
                continue
            order = asked[0]
            device = order.task.device
            if not reply.has_error() and reply.metadata.src_node_id != self.nodes[device]:
                self.outcomes[device] = Missing(device, "another node answered in its place")
                continue
            self.outcomes[device] = self.engine.outcome(order, reply)
        now = time.monotonic()
        for number, (order, deadline) in list(self.open.items()):
            if now > deadline:
                del self.open[number]
                device = order.task.device
                self.outcomes[device] = self.engine.late(device)
        return bool(replies)
