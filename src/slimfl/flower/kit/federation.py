"""A federation on this machine, or the server's part of one: up, status, down, revoke."""

import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from slimfl.errors import RequestError, RunError
from slimfl.flower.kit import addresses
from slimfl.flower.kit.keys import read_public_key
from slimfl.flower.kit.layout import Kit
from slimfl.flower.kit.processes import Processes
from slimfl.flower.kit.proxy import NO_NGINX, find_nginx
from slimfl.flower.superlink import SuperLink, UnreachableError

#: Timeouts for the server's first answer and for the devices, for a slow machine.
SERVER_S, DEVICES_S = 90.0, 180.0

#: Flower considers a device online until it has missed two heartbeats of 30 s, and accepts nobody
#: else with its key until then.
FORGET_S = 75.0

SERVER = "server"


class Federation:
    """The processes of a kit's folder."""

    def __init__(self, kit: Kit) -> None:
        self.kit = kit
        self.processes = Processes(kit.path / "processes.json")

    def up(self, server_only: bool = False) -> None:
        """Start what is not running, and wait until everything is up."""
        if self.kit.proxied and find_nginx() is None:
            raise RequestError(NO_NGINX)
        if SERVER not in self.processes.running():
            self.processes.end([SERVER])  # what a killed server left behind may still listen
            for host, port in {(self.kit.bind, self.kit.port), self.kit.control}:
                addresses.check_free(host, port)
        self._start(SERVER, self.kit.server)
        self._wait_for("the server", SERVER_S, [SERVER], self._answers)
        self.register()
        if server_only:
            return
        welcome = self._welcome()
        self._outlive_the_dead(welcome)
        names = [self.kit.device_name(device) for device in welcome]
        for device, name in zip(welcome, names, strict=True):
            self._start(name, self.kit.device(device))
        self._wait_for("the devices", DEVICES_S, [SERVER, *names], lambda: self._online(welcome))

    def register(self) -> None:
        """Register the keys of all devices with the server; revoked ones stay revoked."""
        self._check_guarded()
        known = self.kit.superlink.nodes()
        nodes = self.kit.registered()
        for device in range(self.kit.devices):
            if nodes.get(device) in known:
                continue
            public = self.kit.device(device) / "node.pub"
            if not public.is_file():
                raise RequestError(f"{public} is missing; copy it here from the device's folder")
            name = self.kit.device_name(device)
            nodes[device] = self.kit.superlink.register(read_public_key(public), name)
        self.kit.write_registered(nodes)

    def _check_guarded(self) -> None:
        """Check that the server refuses commands without the token, as Flower itself would not.

        The gate wraps Flower's own application, which another version may build differently.
        """
        link = self.kit.superlink
        try:
            SuperLink(link.address, link.root_certificates).nodes()
        except UnreachableError:
            raise
        except RunError:
            return
        self.down()
        raise RunError(
            f"the SuperLink at {link.address} took a command without the control token; use the "
            "version of Flower that slimfl's extra `flower` installs"
        )

    def revoke(self, device: int) -> None:
        """Refuse a device from now on."""
        nodes = self.kit.registered()
        if device not in nodes:
            raise RequestError(f"device {device} is not registered; nothing to revoke")
        self.kit.superlink.unregister(nodes[device])

    def status(self) -> list[dict[str, Any]]:
        """The processes on this machine, and the server's state of every device."""
        running = self.processes.running()
        there = self._answers()
        states = self.kit.superlink.nodes() if there else {}
        nodes = self.kit.registered()
        rows: list[dict[str, Any]] = [
            {
                "name": SERVER,
                "state": "answers" if there else "does not answer",
                "pid": running[SERVER].pid if SERVER in running else None,
            }
        ]
        for device in range(self.kit.devices):
            name = self.kit.device_name(device)
            state = states.get(nodes.get(device, 0), "unregistered" if there else "unknown")
            pid = running[name].pid if name in running else None
            rows.append({"name": name, "state": state, "pid": pid})
        return rows

    def down(self) -> None:
        """End all processes of the kit on this machine, devices first to avoid their errors."""
        names = [process.name for process in self.processes.all()]
        self.processes.end([name for name in names if name != SERVER])
        self.processes.end([SERVER])

    def log(self, name: str) -> Path:
        """The log file of a process."""
        return self.kit.path / "logs" / f"{name}.log"

    def _start(self, name: str, folder: Path) -> None:
        if name in self.processes.running():
            return
        binaries = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        environment = {**os.environ, "PATH": binaries}
        self.processes.start(name, ["sh", str(folder / "start.sh")], self.log(name), environment)

    def _answers(self) -> bool:
        """True if the SuperLink answers its owner and the devices' address is open."""
        if not self.kit.superlink.healthy():
            return False
        try:
            socket.create_connection((self.kit.bind, self.kit.port), timeout=5).close()
        except OSError:
            return False
        return True

    def _welcome(self) -> list[int]:
        """The devices that were not revoked."""
        states = self.kit.superlink.nodes()
        nodes = self.kit.registered()
        return [
            device
            for device in range(self.kit.devices)
            if states.get(nodes[device], "unregistered") != "unregistered"
        ]

    def _online(self, devices: Sequence[int]) -> bool:
        states = self.kit.superlink.nodes()
        nodes = self.kit.registered()
        return all(states.get(nodes[device]) == "online" for device in devices)

    def _outlive_the_dead(self, devices: Sequence[int]) -> None:
        """Wait until the server has forgotten killed devices, as it identifies them by key."""
        deadline = time.monotonic() + FORGET_S
        for device in devices:
            name = self.kit.device_name(device)
            while name not in self.processes.running() and self._online([device]):
                if time.monotonic() > deadline:
                    raise RequestError(
                        f"{name} is online on another machine; leave it there with --server-only, "
                        "or stop it there"
                    )
                time.sleep(0.5)

    def _wait_for(
        self, what: str, patience_s: float, names: list[str], there: Callable[[], bool]
    ) -> None:
        deadline = time.monotonic() + patience_s
        while not _holds(there):
            running = self.processes.running()
            ended = [name for name in names if name not in running]
            late = time.monotonic() > deadline
            if ended or late:
                culprit = ended[0] if ended else names[-1]
                self.down()
                reason = f"{culprit} ended" if ended else f"not there after {patience_s:g} s"
                raise RunError(f"{what} did not start: {reason}; {self.log(culprit)} says why")
            time.sleep(0.5)


def _holds(there: Callable[[], bool]) -> bool:
    """False while the server does not answer; its failure is detected elsewhere."""
    try:
        return there()
    except UnreachableError:
        return False
