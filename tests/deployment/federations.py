"""Helpers for tests of real federations."""

import socket
import subprocess
import time
from pathlib import Path

#: Bounds on waiting, generous for a busy machine; an idle one needs a tenth.
PATIENCE_S = 300


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


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
