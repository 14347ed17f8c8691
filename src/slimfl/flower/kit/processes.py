"""Processes that outlive a command: known by id and start, ended with all they started."""

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from slimfl.errors import RunError


@dataclass(frozen=True)
class Process:
    """A process that was started here."""

    name: str
    pid: int
    started: str
    """When, as the system tells it: an id may be used again, but not with the same start."""


class Processes:
    """The processes of a kit, remembered in a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def all(self) -> list[Process]:
        """Those that were started and not ended by `end`."""
        try:
            return [Process(**entry) for entry in json.loads(self.file.read_text())]
        except FileNotFoundError:
            return []

    def running(self) -> dict[str, Process]:
        """Those that are alive, by name."""
        table = _table()
        return {
            p.name: p for p in self.all() if p.pid in table and table[p.pid].started == p.started
        }

    def start(self, name: str, command: list[str], log: Path, environment: dict[str, str]) -> None:
        """Start a process in a session of its own; what it says goes to a file."""
        log.parent.mkdir(mode=0o700, exist_ok=True)
        with log.open("ab") as output:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=environment,
            )
        # noticed when it ends: what watches over it must not take it for alive
        threading.Thread(target=child.wait, daemon=True).start()
        found = _table().get(child.pid)
        if found is None:
            raise RunError(f"{name} ended at once; {log} says why")
        running = [p for p in self.all() if p.name != name]
        self._write([*running, Process(name, child.pid, found.started)])

    def end(self, names: Iterable[str], patience_s: float = 15.0) -> None:
        """Ask processes and all that they started to end, and make them when they do not."""
        running = self.running()
        ending = _with_descendants([running[name].pid for name in names if name in running])
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in _alive(ending):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            deadline = time.monotonic() + patience_s
            while _alive(ending) and time.monotonic() < deadline:
                time.sleep(0.2)
        left = _alive(ending)
        if left:
            raise RunError(f"processes {left} do not end; end them by hand")
        self._write([p for p in self.all() if p.name in self.running()])

    def _write(self, processes: list[Process]) -> None:
        temporary = self.file.with_suffix(".tmp")
        temporary.write_text(json.dumps([asdict(p) for p in processes]))
        temporary.rename(self.file)


@dataclass(frozen=True)
class _Entry:
    parent: int
    started: str


def _table() -> dict[int, _Entry]:
    """All living processes; one that only waits to be noticed by its parent does not count."""
    return _from_proc() if Path("/proc/self/stat").exists() else _from_ps()


def _from_proc() -> dict[int, _Entry]:
    table = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            # the name in brackets may hold anything; state, parent and, 18 on, the start follow it
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
            if fields[0] not in "ZX":
                table[int(path.parent.name)] = _Entry(int(fields[1]), fields[19])
    return table


def _from_ps() -> dict[int, _Entry]:
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,stat=,lstart="], capture_output=True, text=True, check=True
    )
    table = {}
    for line in listed.stdout.splitlines():
        pid, parent, state, started = line.split(maxsplit=3)
        if not state.startswith("Z"):
            table[int(pid)] = _Entry(int(parent), started.strip())
    return table


def _alive(entries: dict[int, _Entry]) -> list[int]:
    table = _table()
    return [p for p, e in entries.items() if p in table and table[p].started == e.started]


def _with_descendants(pids: list[int]) -> dict[int, _Entry]:
    table = _table()
    found = {pid: table[pid] for pid in pids if pid in table}
    while True:
        children = {
            pid: entry for pid, entry in table.items() if entry.parent in found and pid not in found
        }
        if not children:
            return found
        found |= children
