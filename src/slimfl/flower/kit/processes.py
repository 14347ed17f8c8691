"""Processes that outlive a command: identified by id and start, ended with their children."""

import contextlib
import functools
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from slimfl.errors import RequestError, RunError
from slimfl.files import read_regular_text


@dataclass(frozen=True)
class Process:
    """A process that was started here."""

    name: str
    pid: int
    started: str
    """Start as the system reports it; an id may be reused, but not with the same start."""


class Processes:
    """The processes of a kit, recorded in a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def all(self) -> list[Process]:
        """Processes that were started and not ended by `end`."""
        try:
            return [_entry(**one) for one in json.loads(read_regular_text(self.file))]
        except FileNotFoundError:
            return []
        except (OSError, TypeError, ValueError, RecursionError) as error:
            raise RequestError(
                f"{self.file} is damaged ({error}); stop the kit's processes by hand, then delete "
                "it"
            ) from None

    def running(self) -> dict[str, Process]:
        """Living processes by name."""
        table = _table()
        return {
            p.name: p for p in self.all() if p.pid in table and table[p.pid].started == p.started
        }

    def start(self, name: str, command: list[str], log: Path, environment: dict[str, str]) -> None:
        """Start a process in its own session; its output goes to a file.

        The remains of an earlier process of that name are ended first, as they may use the port.
        """
        self.end([name])
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
        # reap it when it ends: its watcher must not take it for alive
        threading.Thread(target=child.wait, daemon=True).start()
        found = _table().get(child.pid)
        if found is None:
            raise RunError(f"{name} ended immediately; see {log} for the reason")
        self._write([*self.all(), Process(name, child.pid, found.started)])

    def end(self, names: Iterable[str], patience_s: float = 15.0) -> None:
        """Ask processes and their children to end, and kill them if they do not."""
        wanted = set(names)
        ending = _families([process for process in self.all() if process.name in wanted])
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in _alive(ending):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
            deadline = time.monotonic() + patience_s
            while _alive(ending) and time.monotonic() < deadline:
                time.sleep(0.2)
        left = _alive(ending)
        if left:
            raise RunError(f"processes {left} do not stop; stop them by hand")
        # others are kept, also where they have ended: they may have left something behind
        self._write([p for p in self.all() if p.name not in wanted])

    def _write(self, processes: list[Process]) -> None:
        temporary = self.file.with_suffix(".tmp")
        temporary.write_text(json.dumps([asdict(p) for p in processes]))
        temporary.rename(self.file)


def _entry(name: str, pid: int, started: str) -> Process:
    if type(name) is not str or type(pid) is not int or type(started) is not str or pid < 2:
        raise TypeError("an entry is not a name, a process id and a start")
    return Process(name, pid, started)


@dataclass(frozen=True)
class _Entry:
    parent: int
    group: int
    started: str


def _table() -> dict[int, _Entry]:
    """All living processes without zombies."""
    return _from_proc() if Path("/proc/self/stat").exists() else _from_ps()


def _from_proc() -> dict[int, _Entry]:
    table = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            # the name in brackets may contain anything; after it come state, parent, group and, 17
            # fields later, the start
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
            if fields[0] not in "ZX":
                started = f"{fields[19]} in {_boot()}"
                table[int(path.parent.name)] = _Entry(int(fields[1]), int(fields[2]), started)
    return table


@functools.cache
def _boot() -> str:
    """An id of the current boot, as start times are relative to it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:  # a container may hide it
        return "this boot"


def _from_ps() -> dict[int, _Entry]:
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,pgid=,stat=,lstart="],
        capture_output=True,
        text=True,
        check=True,
    )
    table = {}
    for line in listed.stdout.splitlines():
        pid, parent, group, state, started = line.split(maxsplit=4)
        if not state.startswith("Z"):
            table[int(pid)] = _Entry(int(parent), int(group), started.strip())
    return table


def _alive(entries: dict[int, _Entry]) -> list[int]:
    table = _table()
    return [p for p, e in entries.items() if p in table and table[p].started == e.started]


def _families(processes: list[Process]) -> dict[int, _Entry]:
    """The living descendants of processes, even if the processes themselves have ended.

    A process leads its own group, and its children stay in the group after its end. The number of a
    group is not reused while it has members; entries of another boot are ignored.
    """
    table = _table()
    boot = _boot_of(table[os.getpid()].started)
    found: list[int] = []
    for process in processes:
        leader = table.get(process.pid)
        if leader is not None and leader.started != process.started:
            continue  # the number has been reused, so the group is gone
        if leader is not None or _boot_of(process.started) == boot:
            found += [pid for pid, entry in table.items() if entry.group == process.pid]
    return _with_descendants(found)


def _boot_of(started: str) -> str:
    return started.partition(" in ")[2]


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
