"""How the engine reaches its devices: a message service, and which node is which device."""

import logging
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial

from flwr.app import ConfigRecord, Message, MessageType, RecordDict
from flwr.serverapp import Grid

from slimfl.engines.choice import ChooseEngine, choose
from slimfl.errors import RequestError
from slimfl.experiment import Experiment
from slimfl.flower.messages import CONFIG

log = logging.getLogger(__name__)

#: The name under which the key of device 3 is registered with the SuperLink.
NAME = re.compile(r"device-(\d+)")


def registered(grid: Grid) -> dict[int, int]:
    """The node of every device: with node authentication, the registered key identifies it."""
    named = [(NAME.fullmatch(node.name), node.node_id) for node in grid.get_nodes()]
    return _one_each([(int(match[1]), node) for match, node in named if match], {})


class Claims:
    """A deployment without node authentication: every node is asked once which device it is."""

    def __init__(self, grid: Grid, timeout_s: float = 60.0) -> None:
        self.grid, self.timeout_s = grid, timeout_s
        self._devices: dict[int, int] = {}  # by node
        self._last: dict[int, int] = {}

    def nodes(self) -> dict[int, int]:
        """By the nodes' answers; a node that did not answer is asked again next time."""
        present = sorted(self.grid.get_node_ids())
        self._ask([node for node in present if node not in self._devices])
        told = [(self._devices[node], node) for node in present if node in self._devices]
        self._last = _one_each(told, self._last)
        return self._last

    def _ask(self, nodes: Collection[int]) -> None:
        if not nodes:
            return
        # an empty record is not delivered
        content = RecordDict({CONFIG: ConfigRecord({"question": "device"})})
        questions = [
            Message(content, dst_node_id=node, message_type=MessageType.QUERY, ttl=self.timeout_s)
            for node in nodes
        ]
        for reply in self.grid.send_and_receive(questions, timeout=self.timeout_s):
            if reply.has_error() or CONFIG not in reply.content.config_records:
                continue
            device = reply.content.config_records[CONFIG].get("device")
            if isinstance(device, int):
                self._devices[reply.metadata.src_node_id] = device


def _one_each(told: list[tuple[int, int]], before: dict[int, int]) -> dict[int, int]:
    """One node per device: of several, the one used before, else the first."""
    nodes: dict[int, int] = {}
    for device, node in told:
        kept = nodes.setdefault(device, node)
        if kept == node:
            continue
        if before.get(device) == node:
            nodes[device], node = node, kept
        log.warning("ignored node %d, which claims to be device %d like another node", node, device)
    return nodes


@dataclass(frozen=True)
class Connection:
    """A message service and the nodes of the devices."""

    grid: Grid
    nodes: Callable[[], dict[int, int]]
    """The node of every connected device."""


def connector(experiment: Experiment, cores: int, grid: Grid | None) -> Callable[[], Connection]:
    """A function that connects when needed.

    Args:
        experiment: How many devices there are, and how they are known.
        cores: Of a simulation.
        grid: The message service of a deployment; None for a simulation, which is then started.
    """
    if grid is not None:
        by_key = experiment.flower.identity == "registered"
        nodes = partial(registered, grid) if by_key else Claims(grid).nodes
        return lambda: Connection(grid, nodes)

    def start() -> Connection:
        check_simulated(experiment)
        from slimfl.flower.simulated import running_simulation  # which starts Ray's hooks

        # any node can play any device, so the k-th node is device k
        grid = running_simulation(experiment.federation.devices, cores)
        return Connection(grid, lambda: dict(enumerate(sorted(grid.get_node_ids()))))

    return start


def check_simulated(experiment: Experiment) -> None:
    """Refuse settings that only real devices can have."""
    for key, real in (
        ("data.partition", experiment.data.partition == "own"),
        ("radio.gains", experiment.radio.gains == "measured"),
    ):
        if real:
            raise RequestError(f"{key} needs real devices; give --superlink, or change {key}")


def deployed(grid: Grid) -> ChooseEngine:
    """An engine choice that makes a `Simulation` use the devices behind a grid."""
    return partial(choose, grid=grid)
