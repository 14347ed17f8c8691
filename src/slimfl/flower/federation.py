"""A federation on this machine, or the server's part of one: up, status, down, revoke.

Its processes outlive the command that starts them. They are known by their environment.
"""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import psutil

from slimfl.errors import RequestError, RunError
from slimfl.flower.keys import read_public_key
from slimfl.flower.kit import NO_NGINX, Kit, find_nginx, joined
from slimfl.flower.processes import end, living, marked
from slimfl.flower.superlink import SuperLink, UnreachableError

#: Timeouts for the server's first answer and for the devices, for a slow machine.
SERVER_S, DEVICES_S = 90.0, 180.0

#: Flower considers a device online until it has missed two heartbeats of 30 s, and accepts nobody
#: else with its key until then.
FORGET_S = 75.0

SERVER = "server"

#: Environment variables of a kit's processes: its folder, their name, and the process that was
#: started under it.
FOLDER, NAME, LEADER = "SLIMFL_KIT", "SLIMFL_KIT_PROCESS", "SLIMFL_KIT_LEADER"


class Federation:
    """The processes of a kit's folder."""

    def __init__(self, kit: Kit) -> None:
        self.kit = kit
        self.processes = Processes(kit.path)

    def up(self, server_only: bool = False) -> None:
        """Start what is not running, and wait until everything is up."""
        if self.kit.proxied and find_nginx() is None:
            raise RequestError(NO_NGINX)
        if SERVER not in self.processes.running():
            self.processes.end([SERVER])  # what a killed server left behind may still listen
            for host, port in {(self.kit.bind, self.kit.port), self.kit.control}:
                check_free(host, port)
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
            "version of Flower that slimfl's extra `deploy` installs"
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
        self.processes.end([self.kit.device_name(device) for device in range(self.kit.devices)])
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


def check_free(host: str, port: int) -> None:
    """Refuse an address on which nothing can listen, before a server fails there without a word."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        reason = str(error.strerror or error).partition(" (while")[0]  # Python adds the address
        raise RequestError(
            f"nothing can listen on {joined(host, port)} ({reason}); stop what "
            "uses it, or make the kit with another --port, --bind or --control-port"
        ) from None


class Processes:
    """The processes of a kit that were started here, known by their environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def running(self) -> dict[str, psutil.Process]:
        """The living processes that were started, by name, without what they started."""
        found = marked(FOLDER, str(self.folder)).items()
        leading = {of[NAME]: one for one, of in found if of.get(LEADER) == str(one.pid)}
        return {name: process for name, process in leading.items() if living([process])}

    def family(self, names: Collection[str]) -> list[psutil.Process]:
        """All living processes of these names, also where the first has ended."""
        found = {one for one, of in marked(FOLDER, str(self.folder)).items() if of[NAME] in names}
        if SERVER in names:
            # nginx overwrites its environment with its title
            title = f" -p {self.folder / SERVER}/ "
            found |= {one for one in psutil.process_iter() if title in " ".join(_command(one))}
        for member in list(found):
            with contextlib.suppress(psutil.Error):
                found |= set(member.children(recursive=True))
        return living(found)

    def start(self, name: str, command: list[str], log: Path, environment: dict[str, str]) -> None:
        """Start a process in its own session.

        The remains of an earlier process of that name are ended first, as they may use the port.

        Args:
            name: Under which it is known.
            command: The program and its arguments.
            log: The file for its output, which is appended.
            environment: All of its environment variables.
        """
        self.end([name])
        log.parent.mkdir(mode=0o700, exist_ok=True)
        with log.open("ab") as output:
            child = subprocess.Popen(
                # the shell becomes the program, and so knows its number
                ["sh", "-c", f'export {LEADER}=$$; exec "$@"', "sh", *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**environment, FOLDER: str(self.folder), NAME: name},
            )
        while child.poll() is None and name not in self.running():
            time.sleep(0.02)  # the shell has not become the program yet
        # reap it when it ends: its watcher must not take it for alive
        threading.Thread(target=child.wait, daemon=True).start()

    def end(self, names: Collection[str], patience_s: float = 15.0) -> None:
        """Ask processes and all that they started to end, and kill them if they do not."""
        for ask in (psutil.Process.terminate, psutil.Process.kill):
            left = end(lambda: self.family(names), ask, patience_s)
        if left:
            pids = ", ".join(str(process.pid) for process in left)
            raise RunError(f"processes {pids} do not stop; stop them by hand")


def _command(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return list(process.cmdline())
    return []
