"""How the engine reaches its devices: a message service, and which node is which device."""

import logging
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from flwr.app import ConfigRecord, Message, MessageType, RecordDict
from flwr.serverapp import Grid

from slimfl.engines.choice import ChooseEngine, choose
from slimfl.errors import RequestError
from slimfl.experiment import Experiment
from slimfl.flower.messages import CONFIG

log = logging.getLogger(__name__)

#: The name under which the key of device 3 is registered with the SuperLink.
NAME = re.compile(r"device-(\d+)")


class Roster(Protocol):
    """Maps devices to nodes."""

    def nodes(self) -> dict[int, int]:
        """The node of every connected device."""


class AssignedRoster:
    """In a simulation any node can play any device, so the k-th node is device k."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid

    def nodes(self) -> dict[int, int]:
        """By position."""
        return dict(enumerate(sorted(self.grid.get_node_ids())))


class RegisteredRoster:
    """A deployment with node authentication: the registered key identifies the device."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid

    def nodes(self) -> dict[int, int]:
        """By the name under which the node's key was registered."""
        told = []
        for node in self.grid.get_nodes():
            match = NAME.fullmatch(node.name)
            if match:
                told.append((int(match[1]), node.node_id))
        return _one_each(told, {})


class ClaimedRoster:
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
    roster: Roster


def connector(experiment: Experiment, cores: int, grid: Grid | None) -> Callable[[], Connection]:
    """A function that connects when needed: through a grid, or to a simulation."""
    if grid is not None:
        registered = experiment.flower.identity == "registered"
        roster = RegisteredRoster(grid) if registered else ClaimedRoster(grid)
        return lambda: Connection(grid, roster)

    def start() -> Connection:
        check_simulated(experiment)
        from slimfl.flower.simulated import simulated

        return simulated(experiment.federation.devices, cores)

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
