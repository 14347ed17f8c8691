"""Helpers for tests of real federations."""

import random
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

from slimfl.errors import RunError

#: Bounds on waiting, generous for a busy machine; an idle one needs a tenth.
PATIENCE_S = 300


def free_ports(count):
    """Ports in a row that no connection is given: these have 32768 and more, Ray less than 20000.

    A free port of those could be any connection's a moment later, and remain so for a minute.
    """
    while True:
        first = random.randrange(20000, 32768 - count)
        ports = range(first, first + count)
        with ExitStack() as held:
            try:
                for port in ports:
                    held.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
        return ports


def bring_up(federation, **options):
    """Start it; a failure tells what the logs say, as nobody sees a test's files later."""
    try:
        federation.up(**options)
    except RunError as error:
        for log in sorted((federation.kit.path / "logs").glob("*.log")):
            error.add_note(f"{log.name}:\n{log.read_text(errors='replace')[-4000:]}")
        raise


def processes():
    return subprocess.check_output(["ps", "-A", "-o", "args="], text=True)


def until(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def listening(pids):
    """The addresses on which processes listen, as the kernel says: (host, port)."""
    inodes = set()
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            try:
                target = str(descriptor.readlink())
            except OSError:
                continue
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    found = set()
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                host, port = fields[1].split(":")
                words = bytes.fromhex(host)
                parts = [words[k : k + 4][::-1] for k in range(0, len(words), 4)]
                found.add((socket.inet_ntop(family, b"".join(parts)), int(port, 16)))
    return found
