"""A message service in memory: nodes run the real device code, and can be made to misbehave."""

import uuid
from dataclasses import dataclass, field

from flwr.app import Error, Message
from flwr.serverapp import Grid

from slimfl.flower.device import Equipment, Workbench
from slimfl.flower.messages import Order


@dataclass
class Node:
    node_id: int
    name: str = ""
    equipment: Equipment = field(default_factory=Equipment)


@dataclass
class FakeGrid(Grid):
    """Answers at once, unless a fault says otherwise.

    `faults[device]` takes (order, message, answer's record) and returns the messages that come of
    it; `away` are devices that are not there.
    """

    nodes: list[Node]
    faults: dict = field(default_factory=dict)
    away: set = field(default_factory=set)
    workbench: Workbench = field(default_factory=Workbench)
    mail: list = field(default_factory=list)
    asked: list = field(default_factory=list)

    def get_nodes(self):
        return [node for node in self.nodes if node.equipment.number not in self.away]

    def get_node_ids(self):
        return [node.node_id for node in self.get_nodes()]

    def push_messages(self, messages):
        numbers = []
        for message in messages:
            message.metadata.__dict__["_message_id"] = str(uuid.uuid4())
            numbers.append(message.metadata.message_id)
            order = Order.read(message.content)
            self.asked.append((order.round, order.task.device))
            node = next(n for n in self.nodes if n.node_id == message.metadata.dst_node_id)
            try:
                record = self.workbench.work(order, node.equipment).record()
            except Exception as error:
                self.mail.append(Message(Error(2, str(error)), reply_to=message))
                continue
            fault = self.faults.get(order.task.device, honest)
            self.mail += fault(order, message, record)
        return numbers

    def pull_messages(self, message_ids):
        # answers that nobody asks for any more are handed out all the same: the engine must cope
        came, self.mail = self.mail, []
        return came

    def send_and_receive(self, messages, *, timeout=None):
        self.push_messages(messages)
        return self.pull_messages([])

    def set_run(self, run):
        pass

    @property
    def run(self):
        return None

    def create_message(self, *arguments, **more):
        raise NotImplementedError


def honest(order, message, record):
    return [Message(record, reply_to=message)]


def federation(devices, **more):
    """Registered nodes, in an order that is not that of the devices."""
    nodes = [
        Node(node_id=1000 - k, name=f"device-{k}", equipment=Equipment(number=k))
        for k in range(devices)
    ]
    return FakeGrid(nodes[::-1], **more)
